-- Takes from buckets that have meters only, all of which refuse: the common case of apply.lua, in as few steps as can be.
--
-- This is a pattern, which `meters.rs` writes out for a number of buckets and the number of limits of each, so that all numbers
-- are locals and nothing is put in tables. What is between `--steps` and `--end` is written for each bucket `$i`; within that each
-- line with `$k`, and what is between `$(` and `$)`, is written for each of its limits. `$last` is where its numbers end.
--
-- KEYS: where what comes of the call is remembered, then the bucket of each step.
-- ARGV: for each step the head that the bucket must have, and numbers: when the hour of the head begins (-1 if it has none), and
-- for each limit what a tick adds, what is full, what is taken in credit and what is taken in tokens.
-- Then, if `$now` asks for it, the time.
-- A value that is there and empty is answered as '?', which is no value of ours: '' is for what is not there.

local BOUND, HOUR, SLACK, AHEAD = 2251799813685248, 3600000000, 600000000, 3600000000
local un, pk, sub, call, keys, args = struct.unpack, struct.pack, string.sub, redis.call, KEYS, ARGV
local now = $now
repeat
  local is_late
  --steps
  local value$i, wanted$i = call('GETRANGE', keys[$i + 1], '0', '$last'), args[$i]
  if sub(value$i, 1, 33) ~= sub(wanted$i, 1, 33) then
    break
  end
  local changed$i, keep$i
  do
    local from$(, gain$k, full$k, price$k, cost$k$) = un('<d$(dddd$)', wanted$i, 34)
    local t, lasts, events$(, used$k, credit$k$) = un('<ddd$(dd$)', value$i, 34)
    -- An odd time marks a bucket that may have waiters, which apply.lua handles.
    if lasts % 2 == 1 then
      break
    end
    local elapsed = now - t
    if elapsed < 0 then
      elapsed, is_late = 0, true
    else
      t = now
    end
    if from >= 0 then
      if t < from or t >= from + HOUR or events >= 4294967295 then
        break
      end
      events = events + 1
      used$k = used$k + cost$k
    end
    credit$k = credit$k + elapsed * gain$k
    if credit$k > full$k then credit$k = full$k end
    credit$k = credit$k - price$k
    if credit$k < 0 and cost$k > 0 or used$k > BOUND then break end
    if from < 0 then
      local need = t
      if t + (full$k - credit$k) / gain$k > need then need = t + (full$k - credit$k) / gain$k end
      if lasts == 0 or lasts < need + SLACK then
        lasts = math.ceil(need / 2) * 2 + AHEAD
        keep$i = math.ceil((lasts - now) / 1000)
      end
    end
    changed$i = pk('<ddd$(dd$)', t, lasts, events$(, used$k, credit$k$))
  end
  --end
  local answer = pk('<c0d', 'T', now)
  if is_late then
    answer = ''
    --steps
    answer = answer .. pk('<bI8I4', 1, un('<d', changed$i), 0)
    --end
  end
  if not call('SET', keys[1], answer, 'NX', 'PX', '$remembered') then
    return call('GET', keys[1])
  end
  --steps
  -- This leaves the time alone at which the key expires.
  call('SETRANGE', keys[$i + 1], '33', changed$i)
  if keep$i and $expires then
    call('PEXPIRE', keys[$i + 1], keep$i)
  end
  --end
  do
    return answer
  end
until true
local was = call('GET', keys[1])
if was then
  return was
end
local seen = { now }
for i = 2, #keys do
  local value = call('GET', keys[i])
  seen[i] = value == '' and '?' or value or ''
end
return seen
