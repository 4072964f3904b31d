-- Prefix of every script that is a request: refuses one that is too late or
-- was overtaken, so that no request takes effect twice.
-- KEYS: 2 what is remembered of the owner: the number of its newest request, and how that was answered
-- ARGV: 1 owner, 2 number of the request, 3 last millisecond, server clock, in which it may run, 4 memory in ms
-- reply: late, or over, each with the server's millisecond
-- gives the locals `now` in ms, `stamp` in us, `owner`, `number`, `newest`, `answered` and `remember`
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[3]) then
    return {'late', now}
end
local owner, number = ARGV[1], tonumber(ARGV[2])
local newest, answered = string.match(redis.call('get', KEYS[2]) or '0:nothing', '^(%d+):(.*)$')
newest = tonumber(newest)
if newest > number then
    return {'over', now}
end
local function remember(answer)
    redis.call('set', KEYS[2], ARGV[2] .. ':' .. answer, 'px', ARGV[4])
end
