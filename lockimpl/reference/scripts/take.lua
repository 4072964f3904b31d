-- Part of what may begin a hold: takes the lock if it is free and nobody is in front.
-- KEYS: 1 lock hash, 4 queue, 5 deadlines
-- ARGV: 4 memory in ms
-- needs the locals of the request, `holder`, `head`, `call`, `lease` in ms and `tokens`, the key of the last fencing token
-- reply: granted with token and time to live in ms
if not holder and (not head or head == owner) then
    if head then
        redis.call('zrem', KEYS[5], owner)
        redis.call('lrem', KEYS[4], 0, owner)
    end
    -- The clock keeps tokens growing when the last one was forgotten.
    local last = tonumber(redis.call('get', tokens) or 0)
    local token = string.format('%.0f', math.max(last + 1, stamp))
    redis.call('set', tokens, token, 'px', ARGV[4])
    redis.call('hset', KEYS[1], 'owner', owner, 'count', 1, 'token', token, 'request', call)
    redis.call('pexpire', KEYS[1], lease)
    remember('granted')
    return {'granted', now, token, lease}
end
