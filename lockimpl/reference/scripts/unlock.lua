-- Gives up one level of the owner's hold, and the lease that only that level
-- asked for; with the last, wakes who is next.
-- KEYS: 1 lock hash, 2 memory of the owner, 3 channel
-- ARGV: 1 owner, 2 number, 3 valid until, 4 memory in ms, 5 last millisecond, server clock, that the other levels ask for
-- reply: released, still_held, not_held; forgotten where the owner does not hold it and nothing is remembered of it
--@request
if newest == number then
    return {answered, now}
end
if redis.call('hget', KEYS[1], 'owner') ~= owner then
    if newest == 0 then
        return {'forgotten', now}
    end
    remember('not_held')
    return {'not_held', now}
end
if redis.call('hincrby', KEYS[1], 'count', -1) > 0 then
    if now + redis.call('pttl', KEYS[1]) > tonumber(ARGV[5]) then
        redis.call('pexpire', KEYS[1], math.max(1, ARGV[5] - now))
    end
    remember('still_held')
    return {'still_held', now}
end
redis.call('del', KEYS[1])
remember('released')
local head
--@queue
--@wake
return {'released', now}
