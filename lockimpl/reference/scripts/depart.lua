-- Part of leaving the fair lock: gives the place up. Who was in front of a
-- free lock may have been woken for it, and passes that on.
-- KEYS: 1 lock hash, 3 channel, 4 queue, 5 deadlines
-- needs the locals `owner` and `head`
redis.call('zrem', KEYS[5], owner)
redis.call('lrem', KEYS[4], 0, owner)
if head == owner and redis.call('exists', KEYS[1]) == 0 then
    head = redis.call('lindex', KEYS[4], 0)
    if head then
        redis.call('publish', KEYS[3], head)
    end
end
