-- Deletes the fair lock whoever holds it, and wakes the head; the queue stays.
-- (F1 to F5, 3.2.0 to 3.21.x)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines, 4 channel of the queue
-- ARGV: 1 message, 2 now in ms
-- reply: 1 deleted, 0 was free
local now = tonumber(ARGV[2])
--@purge
if redis.call('del', KEYS[1]) == 0 then
    return 0
end
local head = redis.call('lindex', KEYS[2], 0)
if head then
    redis.call('publish', KEYS[4] .. ':' .. head, ARGV[1])
end
return 1
