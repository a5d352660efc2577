-- The members of an ordered set and the values they stand for.
--
-- KEYS: the set.
-- ARGV: the time or '' for the server's, from, to, how many, 1 if the last come first, what the key of a value starts with,
-- then what the key ends with: 'all' of a member, or what is 'behind' its first '\0\0'.
-- A value that is there and empty is answered as '?', which is no value of ours: '' is for what is not there.

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now + 0
end
local members
if ARGV[5] == '1' then
  members = redis.call('ZRANGE', KEYS[1], ARGV[3], ARGV[2], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
else
  members = redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4])
end
local answer = { now }
for i, member in ipairs(members) do
  local key = member
  if ARGV[7] ~= 'all' then
    key = string.sub(member, (string.find(member, '\0\0', 1, true) or -1) + 2)
  end
  answer[2 * i] = member
  local value = redis.call('GET', ARGV[6] .. key)
  answer[2 * i + 1] = value == '' and '?' or value or ''
end
return answer
