-- Deletes the plain lock whoever holds it. (G4 to G8, 2.2.4 to 3.21.x)
-- KEYS: 1 lock hash, 2 channel
-- ARGV: 1 message
-- reply: 1 deleted, 0 was free
if redis.call('del', KEYS[1]) == 0 then
    return 0
end
redis.call('publish', KEYS[2], ARGV[1])
return 1
