-- Part of the acquire scripts: the owner enters again.
-- KEYS: 1 lock hash
-- ARGV: 1 lease in ms, 2 owner
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    redis.call('hincrby', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return nil
end
