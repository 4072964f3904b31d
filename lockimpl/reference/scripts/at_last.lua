-- Part of leaving the fair lock: whom the acquire put in front of it takes it when it is free,
-- since others were told that somebody is.
-- KEYS: the last: last fencing token
-- ARGV: 6 lease in ms; 0: it is not wanted any more
-- needs the locals of the request, `call`, `holder` and `head`
local lease, tokens = tonumber(ARGV[6]), KEYS[#KEYS]
if lease > 0 and head == owner and newest > tonumber(call) and newest < number then
    --@take
end
