-- Gives up one level of the plain lock; a free lock may be unlocked by anyone.
-- (G4, 2.2.4 to 3.10.5)
-- KEYS: 1 lock hash, 2 channel
-- ARGV: 1 message, 2 lease in ms, 3 owner
-- reply: 1 released or free, 0 still held, nil not the owner
if redis.call('exists', KEYS[1]) == 0 then
    redis.call('publish', KEYS[2], ARGV[1])
    return 1
end
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
