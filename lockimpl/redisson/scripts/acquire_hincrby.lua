-- Takes the plain lock, or enters it again; both count up, so that a count is
-- never written over. (G6, 3.12.3 to 3.18.1)
-- KEYS: 1 lock hash
-- ARGV: 1 lease in ms, 2 owner
-- reply: nil acquired, else the lock's remaining time in ms (-1: endless)
if redis.call('exists', KEYS[1]) == 0 then
    redis.call('hincrby', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return nil
end
--@reenter
return redis.call('pttl', KEYS[1])
