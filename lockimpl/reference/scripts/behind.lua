-- Part of the fair acquire: what a waiter is told again where the lock is free and others are in front.
-- KEYS: 4 queue, 5 deadlines
-- needs the locals of the request and `holder`
-- reply: busy, and -3
local first = redis.call('lindex', KEYS[4], 0)
local due = first and redis.call('zscore', KEYS[5], first)
if not holder and due and first ~= owner and tonumber(due) > now then
    return {'busy', now, -3}
end
