-- Takes the fenced lock, or enters it again; each time draws a token.
-- (3.19.0 and later)
-- KEYS: 1 lock hash, 2 token counter
-- ARGV: 1 lease in ms, 2 owner
-- reply: nil acquired, else the lock's remaining time in ms (-1: endless)
local free = redis.call('exists', KEYS[1]) == 0
if free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    redis.call('incr', KEYS[2])
    redis.call('hincrby', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return nil
end
return redis.call('pttl', KEYS[1])
