-- Deletes the plain lock whoever holds it. (G9, 3.22.0 and later)
-- KEYS: 1 lock hash, 2 channel
-- ARGV: 1 message, 2 publish command
-- reply: 1 deleted, 0 was free
if redis.call('del', KEYS[1]) == 0 then
    return 0
end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1
