-- Part of the fair acquire: what a waiter is told again where the lock is free and others are in front.
-- KEYS: 4 queue, 5 deadlines
-- needs the locals of the request and `holder`
-- reply: busy, and -3
local first = redis.call('lindex', KEYS[4], 0)
if not holder and first and first ~= owner and tonumber(redis.call('zscore', KEYS[5], first) or 0) > now then
    return {'busy', now, -3}
end
