-- Prefix of the fair scripts: drops the heads of the queue whose deadline has
-- passed; a head without a deadline is an error. (F1 to F5, 3.2.0 to 3.30.0)
-- KEYS: 2 queue, 3 deadlines
-- needs the local `now`
while true do
    local head = redis.call('lindex', KEYS[2], 0)
    if not head then
        break
    end
    if tonumber(redis.call('zscore', KEYS[3], head)) > now then
        break
    end
    redis.call('zrem', KEYS[3], head)
    redis.call('lpop', KEYS[2])
end
