-- Part of the acquire scripts: the owner may not enter again. (non-reentrant
-- locks, 4.4.0 and later)
-- KEYS: 1 lock hash
-- ARGV: 2 owner
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    return redis.error_reply('NON_REENTRANT_REACQUIRE')
end
