-- Renews one hold of each lock named. (3.44.0 and later)
-- KEYS: 1.. lock hashes
-- ARGV: 1 lease in ms, i+1 owner for KEYS[i]
-- reply: a list, 1 renewed or 0 not held by that owner, in the order of KEYS
local answers = {}
for i = 1, #KEYS do
    local held = redis.call('hexists', KEYS[i], ARGV[i + 1])
    if held == 1 then
        redis.call('pexpire', KEYS[i], ARGV[1])
    end
    answers[i] = held
end
return answers
