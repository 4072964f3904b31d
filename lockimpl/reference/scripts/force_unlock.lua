-- Frees the lock whoever holds it.
-- KEYS: 1 lock hash, 2 memory of this request, 3 channel, the last: last fencing token
-- ARGV: 1 owner, of this one request, 2 number, 3 valid until, 4 memory in ms
-- reply: released, not_held, each with the fencing token up to which every hold is over, and 0
--@request
if newest == number then
    local said, last = string.match(answered, '^(.*):(.*)$')
    return {said, now, last, 0}
end
local last = redis.call('hget', KEYS[1], 'token') or redis.call('get', KEYS[#KEYS]) or '0'
if redis.call('del', KEYS[1]) == 0 then
    -- The last token may be forgotten. The clock is later than the tokens of all holds that are over.
    last = string.format('%.0f', math.max(last, stamp - 1))
    remember('not_held:' .. last)
    return {'not_held', now, last, 0}
end
remember('released:' .. last)
local head
--@queue
--@wake
return {'released', now, last, 0}
