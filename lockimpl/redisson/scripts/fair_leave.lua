-- Leaves the queue. (F2, 3.2.4 to 3.5.4)
-- KEYS: 1 queue, 2 deadlines
-- ARGV: 1 owner
-- reply: nothing of use
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('lrem', KEYS[1], 0, ARGV[1])
