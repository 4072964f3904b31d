-- Part of the scripts that free the plain lock: wakes one waiter a client.
-- KEYS: 3 channel
redis.call('publish', KEYS[3], '')
