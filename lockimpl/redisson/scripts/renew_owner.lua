-- Renews one owner's hold. (2.4.0/3.1.0 to 3.43.0)
-- KEYS: 1 lock hash
-- ARGV: 1 lease in ms, 2 owner
-- reply: 1 renewed, 0 not held by this owner
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
    return 0
end
redis.call('pexpire', KEYS[1], ARGV[1])
return 1
