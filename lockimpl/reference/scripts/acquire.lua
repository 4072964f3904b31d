-- Takes the lock when it is free, or enters it again for its owner.
-- KEYS: 1 lock hash, 2 memory of the owner, 3 last fencing token
-- ARGV: 1 owner, 2 number, 3 valid until, 4 memory in ms, 5 lease in ms
-- reply: granted with token and time to live in ms; busy with the time to live in ms
--@request
local lease = tonumber(ARGV[5])
local holder = redis.call('hget', KEYS[1], 'owner')
if holder == owner and tonumber(redis.call('hget', KEYS[1], 'request')) == number then
    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}
end
if newest == number and answered ~= 'busy' then
    return {'over', now} -- it was granted, and that hold is gone
end
--@keep
local head
--@queue
if holder == owner then
    redis.call('hset', KEYS[1], 'request', ARGV[2])
    remember('granted')
    redis.call('hincrby', KEYS[1], 'count', 1)
    if redis.call('pttl', KEYS[1]) < lease then
        redis.call('pexpire', KEYS[1], lease)
    end
    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}
end
if not holder and (not head or head == owner) then
    if head then
        redis.call('zrem', KEYS[5], owner)
        redis.call('lrem', KEYS[4], 0, owner)
    end
    -- The clock keeps tokens growing when the last one was forgotten.
    local last = tonumber(redis.call('get', KEYS[3]) or 0)
    local token = string.format('%.0f', math.max(last + 1, stamp))
    redis.call('set', KEYS[3], token, 'px', ARGV[4])
    redis.call('hset', KEYS[1], 'owner', owner, 'count', 1, 'token', token, 'request', ARGV[2])
    redis.call('pexpire', KEYS[1], lease)
    remember('granted')
    return {'granted', now, token, lease}
end
remember('busy')
--@wait
return {'busy', now, redis.call('pttl', KEYS[1])}
