-- Takes the fair lock, enters it again, or queues. (F7, 3.32.0 to 3.44.0)
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
local ttl
if last and last ~= ARGV[2] then
    ttl = tonumber(redis.call('zscore', KEYS[3], last)) - now
else
    ttl = redis.call('pttl', KEYS[1])
end
if redis.call('zadd', KEYS[3], now + ttl + wait, ARGV[2]) == 1 then
    redis.call('rpush', KEYS[2], ARGV[2])
end
return ttl
