-- Gives up an acquire: its place in the queue, and the right to be granted
-- later. One that was granted unheard stays so, and is told.
-- KEYS: 1 lock hash, 2 memory of the owner, 3 channel
-- ARGV: 1 owner, 2 number, 3 valid until, 4 memory in ms, 5 number of the acquire, less than those of its attempts
-- reply: granted with token and time to live in ms; over where it was granted and that hold is gone; busy where that was
-- the answer; left where there was none
--@request
local call = ARGV[5]
local holder = redis.call('hget', KEYS[1], 'owner')
if holder == owner and redis.call('hget', KEYS[1], 'request') == call then
    return {'granted', now, redis.call('hget', KEYS[1], 'token'), redis.call('pttl', KEYS[1])}
end
local said = 'left'
if newest > tonumber(call) then
    if answered == 'granted' then
        return {'over', now}
    end
    if answered == 'busy' then
        said = 'busy'
    end
end
local head
--@queue
--@at_last
remember(said)
--@depart
return {said, now}
