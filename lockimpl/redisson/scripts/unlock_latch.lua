-- Gives up one level of the plain lock, once per request. (G10, 3.24.0 and later)
-- KEYS: 1 lock hash, 2 channel, 3 unlock latch of this request
-- ARGV: 1 message, 2 lease in ms, 3 owner, 4 publish command, 5 life of the latch in ms
-- reply: 1 released, 0 still held, nil not the owner
local answered = redis.call('get', KEYS[3])
if answered then
    return tonumber(answered)
end
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
    return nil
end
local levels = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if levels > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    redis.call('set', KEYS[3], 0, 'px', ARGV[5])
    return 0
end
redis.call('del', KEYS[1])
redis.call(ARGV[4], KEYS[2], ARGV[1])
redis.call('set', KEYS[3], 1, 'px', ARGV[5])
return 1
