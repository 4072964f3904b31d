-- Leaves the queue; those behind move up by one wait. (F4, 3.11.1 and later)
-- KEYS: 1 queue, 2 deadlines
-- ARGV: 1 owner, 2 wait in ms
-- reply: nothing of use
local behind = false
for _, waiter in ipairs(redis.call('lrange', KEYS[1], 0, -1)) do
    if behind then
        redis.call('zincrby', KEYS[2], -tonumber(ARGV[2]), waiter)
    elseif waiter == ARGV[1] then
        behind = true
    end
end
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('lrem', KEYS[1], 0, ARGV[1])
