-- Keeps a hold alive, and no other than the one that the token names.
-- KEYS: 1 lock hash
-- ARGV: 1 owner, 2 fencing token, 3 lease in ms
-- reply: 1 renewed, 0 the hold is gone
if redis.call('hget', KEYS[1], 'owner') ~= ARGV[1] or redis.call('hget', KEYS[1], 'token') ~= ARGV[2] then
    return 0
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[3]) then
    redis.call('pexpire', KEYS[1], ARGV[3])
end
return 1
