-- Takes the fair lock if nobody is in front, or enters it again; never queues.
-- (F4, 3.11.1 and later)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines
-- ARGV: 1 lease in ms, 2 owner, 3 now in ms, 4 wait in ms
-- reply: nil acquired, 1 not
local now = tonumber(ARGV[3])
local wait = tonumber(ARGV[4])
--@purge
--@take
--@reenter
return 1
