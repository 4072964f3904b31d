-- Takes the lock when it is free, or enters it again for its owner.
-- KEYS: 1 lock hash, 2 memory of the owner, 3 last fencing token
-- ARGV: 1 owner, 2 number of this attempt, 3 valid until, 4 memory in ms, 5 lease in ms, 7 number of the call, less than those of its attempts
-- reply: granted with token and time to live in ms; busy with the time to live in ms, or -3 where others are in front
--@request
local lease, call = tonumber(ARGV[5]), ARGV[7]
local holder = redis.call('hget', KEYS[1], 'owner')
if holder == owner and redis.call('hget', KEYS[1], 'request') == call then
    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}
end
if newest > tonumber(call) and answered == 'granted' then
    return {'over', now} -- that hold is gone
end
if newest == number then
    -- That was so then. Where the lock is free by now, another attempt is due at once.
    --@behind
    return {'busy', now, math.max(redis.call('pttl', KEYS[1]), 0)}
end
--@keep
local head
--@queue
if holder == owner then
    redis.call('hset', KEYS[1], 'request', call)
    remember('granted')
    redis.call('hincrby', KEYS[1], 'count', 1)
    if redis.call('pttl', KEYS[1]) < lease then
        redis.call('pexpire', KEYS[1], lease)
    end
    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}
end
local tokens = KEYS[3]
--@take
remember('busy')
--@wait
return {'busy', now, redis.call('pttl', KEYS[1])}
