-- Gives up an acquire: its place in the queue, and the right to be granted
-- later. One that was granted unheard stays so, and is told.
-- KEYS: 1 lock hash, 2 memory of the owner, 3 channel
-- ARGV: 1 owner, 2 number, 3 valid until, 4 memory in ms, 5 number of the acquire
-- reply: granted with token and time to live in ms; over where it was granted and that hold is gone; busy where that was
-- the answer; left where there was none
--@request
if redis.call('hget', KEYS[1], 'owner') == owner and redis.call('hget', KEYS[1], 'request') == ARGV[5] then
    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}
end
if newest == tonumber(ARGV[5]) and answered == 'granted' then
    return {'over', now}
end
local said = 'left'
if (newest == tonumber(ARGV[5]) or newest == number) and answered == 'busy' then
    said = 'busy'
end
remember(said)
local head
--@queue
--@depart
return {said, now}
