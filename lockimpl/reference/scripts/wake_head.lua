-- Part of the scripts that free the fair lock: wakes the waiter in front.
-- KEYS: 3 channel
-- needs the local `head`
if head then
    redis.call('publish', KEYS[3], head)
end
