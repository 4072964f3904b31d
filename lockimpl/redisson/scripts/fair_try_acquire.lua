-- Takes the fair lock if nobody is in front, or enters it again; never queues.
-- (F1 to F3, 3.2.0 to 3.11.0)
-- KEYS: 1 lock hash, 2 queue, 3 deadlines
-- ARGV: 1 lease in ms, 2 owner, 3 now in ms
-- reply: nil acquired, 1 not
local now = tonumber(ARGV[3])
--@purge
--@take
--@reenter
return 1
