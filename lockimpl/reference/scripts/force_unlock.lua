-- Frees the lock whoever holds it.
-- KEYS: 1 lock hash, 2 memory of this request, 3 channel
-- ARGV: 1 owner, of this one request, 2 number, 3 valid until, 4 memory in ms
-- reply: released, not_held
--@request
if newest == number then
    return {answered, now}
end
if redis.call('del', KEYS[1]) == 0 then
    remember('not_held')
    return {'not_held', now}
end
remember('released')
local head
--@queue
--@wake
return {'released', now}
