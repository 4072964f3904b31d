-- Part of the fair acquire: a call that has been here keeps its place, however
-- late it comes; what an earlier call of its owner left is gone.
-- KEYS: 4 queue, 5 deadlines
-- ARGV: 6 how long the place stays without another word, in ms
-- needs the locals of the request and `call`
if newest > tonumber(call) and redis.call('zscore', KEYS[5], owner) then
    redis.call('zadd', KEYS[5], now + tonumber(ARGV[6]), owner)
else
    redis.call('zrem', KEYS[5], owner)
    redis.call('lrem', KEYS[4], 0, owner)
end
