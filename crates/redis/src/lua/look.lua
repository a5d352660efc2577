-- What there is at one instant, and when that is; or what came of a call that was applied before.
--
-- KEYS: where what comes of the call is remembered, then whatever is looked at.
-- ARGV: the time or '' for the server's.

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
  seen[i] = redis.call('GET', KEYS[i]) or ''
end
return seen
