-- Gives the lock up if it is the caller's.
-- KEYS: 1 lock
-- ARGV: 1 owner
-- reply: 1 deleted, 0 held by another or free
if redis.call('get', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('del', KEYS[1])
