-- Makes changes if everything still is as it was seen; otherwise changes nothing and answers what there is now.
--
-- KEYS: where what comes of the call is remembered, then what was seen, then what else is changed: a cluster moves the keys
-- of a slot one by one, and must refuse the whole if one of them is elsewhere.
-- ARGV: the time or '' for the server's, how long the call is remembered, what comes of it, how many keys were seen, their
-- values, then commands, each behind the number of its words.
-- A value that is there and empty is answered as '?', which is no value of ours: '' is for what is not there.

local was = redis.call('GET', KEYS[1])
if was then
  return was
end
local count, seen, same = ARGV[4] + 0, {}, true
for i = 2, count + 1 do
  local value = redis.call('GET', KEYS[i])
  seen[i] = value == '' and '?' or value or ''
  same = same and seen[i] == ARGV[i + 3]
end
if not same then
  local now = ARGV[1]
  if now == '' then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  else
    now = now + 0
  end
  seen[1] = now
  return seen
end
local at = count + 5
while at <= #ARGV do
  local words = ARGV[at] + 0
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
return ARGV[3]
