-- Part of the fair acquire scripts: takes a free lock for the head of the
-- queue or, when nobody queues, for anyone, and moves all waiters up by one
-- wait. (F4, 3.11.1 and later)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines
-- ARGV: 1 lease in ms, 2 owner
-- needs the local `wait`
if redis.call('exists', KEYS[1]) == 0
    and (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], ARGV[2])
    for _, waiter in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
        redis.call('zincrby', KEYS[3], -wait, waiter)
    end
    redis.call('hset', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return nil
end
