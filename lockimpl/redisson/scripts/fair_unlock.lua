-- Gives up one level of the fair lock; a free lock may be unlocked by anyone.
-- (F1 to F5, 3.2.0 to 3.21.x)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines, 4 channel of the queue
-- ARGV: 1 message, 2 lease in ms, 3 owner, 4 now in ms
-- reply: 1 released or free, 0 still held, nil not the owner
local now = tonumber(ARGV[4])
--@purge
local held = redis.call('exists', KEYS[1]) == 1
if held then
    if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
        return nil
    end
    if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
        redis.call('pexpire', KEYS[1], ARGV[2])
        return 0
    end
    redis.call('del', KEYS[1])
end
local head = redis.call('lindex', KEYS[2], 0)
if head then
    redis.call('publish', KEYS[4] .. ':' .. head, ARGV[1])
end
return 1
