-- Gives up one level of the plain lock. (G5 to G8, 3.10.6 to 3.21.x)
-- KEYS: 1 lock hash, 2 channel
-- ARGV: 1 message, 2 lease in ms, 3 owner
-- reply: 1 released, 0 still held, nil not the owner
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
    return nil
end
if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1
