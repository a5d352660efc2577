-- Takes from buckets that have meters only, all of which refuse: the common case of apply.lua, in fewer steps.
--
-- KEYS and ARGV are those of apply.lua, but for the numbers of a step: whether it is metered, the version of its limits, and for
-- each limit what a tick adds, what a token costs, what is full and what is taken.

local DOUBLES = '<dddddddddddddddddddddddddddddddddddd'
local BOUND, HOUR, SLACK, AHEAD = 2251799813685248, 3600000000, 600000000, 3600000000
local un, pk, sub, call = struct.unpack, struct.pack, string.sub, redis.call
local steps, values, now = #KEYS - 1, {}, ARGV[1]
for i = 1, steps do
  values[i] = call('GET', KEYS[i + 1])
end
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now + 0
end

local answer, written, keeps, fits = '', {}, {}, true
for i = 1, steps do
  local v, numbers, text = values[i], ARGV[2 * i + 1], ARGV[2 * i + 2]
  if not v or sub(v, 1, 1) ~= 'N' or sub(v, -#text) ~= text then
    fits = false
    break
  end
  local n = (#numbers - 16) / 32
  local rules, state = { un(sub(DOUBLES, 1, 3 + 4 * n), numbers) }, { un(sub(DOUBLES, 1, 6 + 2 * n), v, 2) }
  local version, t, hour = rules[2], now, state[4]
  if version ~= 0 and state[2] > version then
    fits = false
    break
  elseif version > state[2] then
    state[2] = version
  end
  local elapsed = t - state[1]
  if elapsed < 0 then
    t, elapsed = state[1], 0
  end
  local metered = rules[1] == 1
  if metered then
    local this = (t - t % HOUR) / HOUR
    if hour == -1 then
      hour = this
      state[4] = this
    elseif hour ~= this or state[5] >= 4294967295 then
      fits = false
      break
    end
    state[5] = state[5] + 1
  end
  local need = t
  for k = 1, n do
    local rule, place = 4 * k - 1, 5 + 2 * k
    local gain, full, cost = rules[rule], rules[rule + 2], rules[rule + 3]
    local credit = state[place] + elapsed * gain
    if credit > full then
      credit = full
    end
    if cost > 0 then
      credit = credit - cost * rules[rule + 1]
      if credit < 0 then
        fits = false
        break
      end
      if metered then
        local used = state[place - 1] + cost
        state[place - 1] = used
        if used > BOUND then
          fits = false
          break
        end
      end
    end
    state[place] = credit
    if hour == -1 and t + (full - credit) / gain > need then
      need = t + (full - credit) / gain
    end
  end
  if not fits then
    break
  end
  local lasts, keep = state[3], 0
  if hour ~= -1 then
    state[3] = 0
  elseif lasts == 0 or lasts < need + SLACK then
    state[3] = math.ceil(need) + AHEAD
    keep = math.ceil((state[3] - now) / 1000)
  else
    keep = -1
  end
  state[1] = t
  written[i] = 'N' .. pk(sub(DOUBLES, 1, 6 + 2 * n), unpack(state, 1, 5 + 2 * n)) .. text
  keeps[i] = keep
  answer = answer .. '\1' .. pk('<I8I4', t, 0)
end

if fits then
  if not call('SET', KEYS[1], answer, 'NX', 'PX', ARGV[2]) then
    return call('GET', KEYS[1])
  end
  for i = 1, steps do
    local keep = keeps[i]
    if keep == 0 or ARGV[1] ~= '' then
      call('SET', KEYS[i + 1], written[i])
    elseif keep < 0 then
      call('SET', KEYS[i + 1], written[i], 'KEEPTTL')
    else
      call('SET', KEYS[i + 1], written[i], 'PX', keep)
    end
  end
  return answer
end
local was = call('GET', KEYS[1])
if was then
  return was
end
local seen = { now }
for i = 1, steps do
  seen[i + 1] = values[i] or ''
end
return seen
