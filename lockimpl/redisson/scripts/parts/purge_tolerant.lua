-- Prefix of the fair scripts: drops the heads of the queue whose deadline has
-- passed; a head without a deadline stops it. (F6, 3.31.0 and later)
-- KEYS: 2 queue, 3 deadlines
-- needs the local `now`
while true do
    local head = redis.call('lindex', KEYS[2], 0)
    if not head then
        break
    end
    local deadline = redis.call('zscore', KEYS[3], head)
    if not deadline or tonumber(deadline) > now then
        break
    end
    redis.call('zrem', KEYS[3], head)
    redis.call('lpop', KEYS[2])
end
