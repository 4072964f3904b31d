-- Prefix of the fair scripts: drops the waiters that have not refreshed their
-- place in time, wherever they stand.
-- KEYS: 4 queue, 5 deadlines
-- needs the local `now`; sets the local `head`
for _, gone in ipairs(redis.call('zrangebyscore', KEYS[5], '-inf', now)) do
    redis.call('zrem', KEYS[5], gone)
    redis.call('lrem', KEYS[4], 0, gone)
end
head = redis.call('lindex', KEYS[4], 0)
while head and not redis.call('zscore', KEYS[5], head) do
    redis.call('lpop', KEYS[4]) -- only where another hand took its deadline
    head = redis.call('lindex', KEYS[4], 0)
end
