-- Leaves the queue; when the head leaves, all move up by one wait. (F3, 3.5.5
-- to 3.11.0)
-- KEYS: 1 queue, 2 deadlines
-- ARGV: 1 owner, 2 wait in ms
-- reply: nothing of use
if redis.call('lindex', KEYS[1], 0) == ARGV[1] then
    for _, waiter in ipairs(redis.call('zrange', KEYS[2], 0, -1)) do
        redis.call('zincrby', KEYS[2], -tonumber(ARGV[2]), waiter)
    end
end
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('lrem', KEYS[1], 0, ARGV[1])
