-- Takes the lock, or takes it again for its owner; there is no room to count.
-- KEYS: 1 lock
-- ARGV: 1 lease in ms, 2 owner
-- reply: 1 acquired, nil held by another
local holder = redis.call('get', KEYS[1])
if holder and holder ~= ARGV[2] then
    return nil
end
redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[1])
return 1
