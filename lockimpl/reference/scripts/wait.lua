-- Part of the fair acquire: takes or refreshes the waiter's place.
-- KEYS: 4 queue, 5 deadlines
-- ARGV: 6 how long the place stays without another word, in ms; 0: none is taken
-- reply: busy, and -3 where others are in front
local place = tonumber(ARGV[6])
if place > 0 then
    redis.call('zadd', KEYS[5], now + place, owner)
    if not redis.call('lpos', KEYS[4], owner) then
        redis.call('rpush', KEYS[4], owner)
    end
    for _, key in ipairs({KEYS[4], KEYS[5]}) do
        if redis.call('pttl', key) < place then
            redis.call('pexpire', key, place)
        end
    end
    if redis.call('lindex', KEYS[4], 0) ~= owner then
        return {'busy', now, -3}
    end
end
