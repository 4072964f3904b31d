-- Gives up one level of the fair lock, once per request; a free lock may be
-- unlocked by anyone. (3.24.0 and later)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines, 4 channel of the queue, 5 unlock latch of this request
-- ARGV: 1 message, 2 lease in ms, 3 owner, 4 now in ms, 5 publish command, 6 life of the latch in ms
-- reply: 1 released or free, 0 still held, nil not the owner
local answered = redis.call('get', KEYS[5])
if answered then
    return tonumber(answered)
end
local now = tonumber(ARGV[4])
--@purge
if redis.call('exists', KEYS[1]) == 0 then
    local head = redis.call('lindex', KEYS[2], 0)
    if head then
        redis.call(ARGV[5], KEYS[4] .. ':' .. head, ARGV[1])
    end
    redis.call('set', KEYS[5], 1, 'px', ARGV[6])
    return 1
end
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
    return nil
end
local levels = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if levels > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    redis.call('set', KEYS[5], 0, 'px', ARGV[6])
    return 0
end
redis.call('del', KEYS[1])
redis.call('set', KEYS[5], 1, 'px', ARGV[6])
local head = redis.call('lindex', KEYS[2], 0)
if head then
    redis.call(ARGV[5], KEYS[4] .. ':' .. head, ARGV[1])
end
return 1
