-- What there is at one instant, and when that is; or what came of a call that was applied before.
--
-- KEYS: where what comes of the call is remembered, then whatever is looked at.
-- ARGV: the time or '' for the server's.
-- A value that is there and empty is answered as '?', which is no value of ours: '' is for what is not there.

local was = redis.call('GET', KEYS[1])
if was then
  return was
end
local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now + 0
end
local seen = { now }
for i = 2, #KEYS do
  local value = redis.call('GET', KEYS[i])
  seen[i] = value == '' and '?' or value or ''
end
return seen
