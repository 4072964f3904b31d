-- Takes the fair lock, enters it again, or queues one wait after the first
-- waiter; who waits already is given a new deadline each time it asks. (F1 to
-- F3, 3.2.0 to 3.11.0)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines
-- ARGV: 1 lease in ms, 2 owner, 3 now and wait in ms, 4 now in ms
-- reply: nil acquired, else how long to wait in ms
local now = tonumber(ARGV[4])
--@purge
--@take
--@reenter
local first = redis.call('lindex', KEYS[2], 0)
local ttl
if first and first ~= ARGV[2] then
    ttl = tonumber(redis.call('zscore', KEYS[3], first)) - now
else
    ttl = redis.call('pttl', KEYS[1])
end
if redis.call('zadd', KEYS[3], ttl + tonumber(ARGV[3]), ARGV[2]) == 1 then
    redis.call('rpush', KEYS[2], ARGV[2])
end
return ttl
