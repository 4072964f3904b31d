-- Takes the fair lock, enters it again, or queues; a last waiter without a
-- deadline counts as none. (F8, 3.45.0 and later)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines
-- ARGV: 1 lease in ms, 2 owner, 3 wait in ms, 4 now in ms
-- reply: nil acquired, else how long to wait in ms
local now = tonumber(ARGV[4])
local wait = tonumber(ARGV[3])
--@purge
--@take
--@reenter
if redis.call('zscore', KEYS[3], ARGV[2]) then
    return math.max(0, redis.call('pttl', KEYS[1]))
end
local last = redis.call('lindex', KEYS[2], -1)
local deadline = last and last ~= ARGV[2] and redis.call('zscore', KEYS[3], last)
local ttl
if deadline then
    ttl = tonumber(deadline) - now
else
    ttl = redis.call('pttl', KEYS[1])
end
if redis.call('zadd', KEYS[3], now + ttl + wait, ARGV[2]) == 1 then
    redis.call('rpush', KEYS[2], ARGV[2])
end
return ttl
