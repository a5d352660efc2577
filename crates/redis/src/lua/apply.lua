-- Takes and settles for all steps of a call at once, or changes nothing and answers what it saw.
--
-- It does what the machines of tollgate-core do, in the same order, for buckets whose numbers are all below 2^53.
-- Whatever is not plain sailing (no such bucket, other limits, a demand that does not fit, debt of a sliding window,
-- usage of an hour that is over) is answered with the values and the time, and worked out by the caller.
--
-- KEYS: where what comes of the call is remembered, then the bucket of each step.
-- ARGV: the time or '' for the server's, how long the call is remembered, then the numbers and the limits of each step;
-- empty numbers are those of a step that is nothing for a script.
-- A value that is there and empty is answered as '?', which is no value of ours: '' is for what is not there.
--
-- A call that takes in turn honours the claims of waiters, and has more arguments:
-- KEYS: the claims on each bucket, by waiter and limit; then, for each limit that is taken from, its waiters by rank.
-- ARGV: the rank; then, for each limit that is taken from, its step, its place in the step, how much is taken of it, whether the
-- caller claims it and its name, and the ranks of waiters behind the caller that claim it.
-- A rank is when a waiter is due, and 16 bytes that order and name waiters that are due at once; a newcomer's is its patience.
-- What is answered of such a call that changes nothing ends with the step and the place of the limit that waiters ahead claim, or
-- zeros, and how many waiters are ahead of the caller if it claims a limit.
-- Without that, a bucket whose `lasts` is odd, which says that it may have waiters, is not taken from.

local BOUND, HOUR, SLACK, AHEAD = 2251799813685248, 3600000000, 600000000, 3600000000
local CLAIM, CLAIM_MS, PAGE = 1000000, 1000, 16
local un, pk, sub, floor = struct.unpack, struct.pack, string.sub, math.floor
local in_turn = #ARGV ~= 2 * #KEYS
local steps = in_turn and (2 * #KEYS - #ARGV + 1) / 2 or #KEYS - 1
local values, now = {}, ARGV[1]
for i = 1, steps do
  values[i] = redis.call('GET', KEYS[i + 1])
end
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now + 0
end

local outcome, written, keeps = {}, {}, {}
local due, waiter, is_waiting, claims, places, held, status

if in_turn then
  local rank = ARGV[2 * steps + 3]
  is_waiting = #rank > 8
  if is_waiting then
    due, waiter = un('<d', rank), sub(rank, 9)
  else
    due, waiter = now + un('<d', rank), string.rep('\255', 16)
  end
  claims, places = {}, {}
  for j = 1, #KEYS - 2 * steps - 1 do
    local limit = ARGV[2 * steps + 2 + 2 * j]
    local step, place, amount, own = un('<dddd', limit)
    claims[j] = {
      step = step, place = place, amount = amount, own = own == 1, name = sub(limit, 33),
      list = KEYS[steps + 1 + step], queue = KEYS[2 * steps + 1 + j], behind = ARGV[2 * steps + 3 + 2 * j],
    }
    places[64 * step + place] = claims[j]
  end
end

local function is_ahead(score, other)
  if score ~= due then
    return score < due
  end
  -- In the order of the bytes, which is not that of texts in every locale.
  local one, two = { un('>I4I4I4I4', other) }, { un('>I4I4I4I4', waiter) }
  for part = 1, 4 do
    if one[part] ~= two[part] then
      return one[part] < two[part]
    end
  end
  return false
end

-- How much waiters ahead claim of a limit: all of it, or more than `room`. Claims that have expired are removed on the way.
local function claimed(claim, room)
  local sum, from = 0, 0
  while true do
    local list, fields = redis.call('ZRANGE', claim.queue, from, from + PAGE - 1, 'WITHSCORES'), {}
    if #list == 0 then
      return sum
    end
    for at = 1, #list, 2 do
      fields[#fields + 1] = list[at] .. claim.name
    end
    local known = redis.call('HMGET', claim.list, unpack(fields))
    for at = 1, #fields do
      local other, expires, amount = list[2 * at - 1], 0, 0
      if known[at] then
        expires, amount = un('<dd', known[at])
      end
      if expires <= now then
        redis.call('ZREM', claim.queue, other)
        redis.call('HDEL', claim.list, fields[at])
      elseif other == waiter or not is_ahead(list[2 * at] + 0, other) then
        return sum
      else
        sum, from = sum + amount, from + 1
        if sum > room then
          return sum
        end
      end
    end
  end
end

-- Has waiters claim a limit from now on: those behind the caller, of whom it is not known how much they want, and itself.
local function register(claim, is_own)
  local ranks, fields, expires = {}, {}, now + CLAIM
  local function add(at, id, amount)
    ranks[#ranks + 1] = string.format('%.0f', at)
    ranks[#ranks + 1] = id
    fields[#fields + 1] = id .. claim.name
    fields[#fields + 1] = pk('<dd', expires, amount)
  end
  if is_own then
    add(due, waiter, claim.amount)
  end
  for at = 1, #claim.behind, 24 do
    local behind = un('<d', claim.behind, at)
    add(behind, sub(claim.behind, at + 8, at + 23), math.huge)
  end
  if #ranks == 0 then
    return
  end
  redis.call('ZADD', claim.queue, unpack(ranks))
  redis.call('HSET', claim.list, unpack(fields))
  if ARGV[1] == '' then
    redis.call('PEXPIRE', claim.queue, CLAIM_MS)
    redis.call('PEXPIRE', claim.list, CLAIM_MS)
  end
end

-- Has the value of a bucket say whether there are claims on it, and answers the value.
local function marked(i, value)
  local mark, form = redis.call('EXISTS', KEYS[steps + 1 + i]), value and sub(value, 1, 1)
  if form == 'M' then
    local lasts = un('<d', value, 42)
    if lasts % 2 ~= mark then
      lasts = pk('<d', lasts - lasts % 2 + mark)
      redis.call('SETRANGE', KEYS[i + 1], 41, lasts)
      value = sub(value, 1, 41) .. lasts .. sub(value, 50)
    end
  elseif form == 'W' and (sub(value, -2) == '\r\n') ~= (mark == 1) then
    value = mark == 1 and sub(value, 1, -2) .. '\r\n' or sub(value, 1, -3) .. '\n'
    redis.call('SET', KEYS[i + 1], value, 'KEEPTTL')
  end
  return value
end

-- Answers true if everything is worked out, nil if a demand does not fit, and false if the caller has to work it out.
local function work()
  for i = 1, steps do
    local v, numbers, text = values[i], ARGV[2 * i + 1], ARGV[2 * i + 2]
    if not v or numbers == '' or sub(v, 1, 1) ~= 'M' or sub(v, -#text) ~= text then
      return false
    end
    local op, metered, version, given, n, holds = un('<dddddd', numbers)
    local hour, was, stamp, lasts, events = un('<ddddd', v, 18)
    local mark = lasts % 2
    lasts = lasts - mark
    if op == 1 then
      if mark == 1 and not in_turn then
        return false
      end
      -- Only a take brings limits that are to be in force.
      if version ~= 0 and was > version then
        return false
      end
      if version > was then
        was = version
      end
    end
    local t, holder, q, p = now, holds == 1 and sub(numbers, 49, 64), 65, 58
    if t < stamp then
      t = stamp
    end
    if metered > 0 then
      local this = floor((op == 1 and t or now) / HOUR)
      if metered > 2 then
        -- A child made the call: its usage is kept apart by a mark on the hour.
        metered, this = metered - 2, this + 2147483648
      end
      if hour == -1 then
        hour = this
      elseif hour ~= this or events >= 4294967295 then
        return false
      end
      if metered == 2 then
        -- What was used is not what is taken, and said behind the limits: how many takes, and how much of each limit.
        events = math.max(0, events + un('<d', numbers, 65 + 64 * n))
      elseif op == 1 then
        events = events + 1
      end
    end
    local parts, warnings, bit, need, forever = { false }, 0, 1, t, hour ~= -1
    for k = 1, n do
      local kind, a, b, c, below, flags, x, y = un('<dddddddd', numbers, q)
      q = q + 64
      local shadow, counted = flags % 2 == 1, metered > 0 and flags < 2
      -- What is taken, or what a settlement takes (above 0) or gives back (below).
      local more = x
      if op == 2 then
        if flags >= 2 then
          more = -x
        else
          more = y - x
        end
      end
      local booked = more
      if metered == 2 then
        booked = un('<d', numbers, 65 + 64 * n + 8 * k)
      end
      local used, left = 0, 0
      if kind == 1 then
        -- A meter: `a` a tick, `b` for a token, full with `c`.
        local credit
        used, credit = un('<dd', v, p)
        p = p + 16
        credit = credit + (t - stamp) * a
        if credit > c then
          credit = c
        end
        credit = credit - more * b
        if op == 1 and credit < 0 and more > 0 and not shadow or credit < -BOUND then
          return nil
        end
        if credit > c then
          credit = c
        end
        if credit < below * b then
          warnings = warnings + bit
        end
        local full = t + (c - credit) / a
        if full > need then
          need = full
        end
        if in_turn then
          left = credit / b
        end
        if counted then
          used = used + booked
        end
        parts[k + 1] = pk('<dd', used, credit)
      elseif kind == 2 then
        -- A fixed window: `a` in each period of `b`.
        local count
        used, count = un('<dd', v, p)
        p = p + 16
        local window = floor(t / b)
        if count ~= 0 and t ~= stamp then
          local ended = window - floor(stamp / b)
          if ended > 0 then
            count = math.max(0, count - ended * a)
          end
        end
        if op == 1 and more > 0 and a - count < more and not shadow then
          return nil
        end
        if more >= 0 then
          count = count + more
        elseif floor(given / b) == window then
          count = math.max(0, count + more)
        end
        if count > BOUND then
          return false
        end
        left = a - count
        if count > 0 then
          need = math.max(need, (window + math.ceil(count / a)) * b)
        end
        if counted then
          used = used + booked
        end
        parts[k + 1] = pk('<dd', used, count)
      elseif kind == 3 then
        -- A gauge of `a`: what is held without a holder, and 32 bytes for each holder: its id, how much, until when.
        local anonymous, sum, next, len
        used, anonymous, sum, next, len = un('<ddddd', v, p)
        local holds = sub(v, p + 40, p + 39 + len)
        p = p + 40 + len
        if len > 0 and (t >= next or lasts == 0) then
          local kept, last, first = {}, 0, math.huge
          sum = 0
          for at = 1, len, 32 do
            local amount, expires = un('<dd', holds, at + 16)
            if expires > t then
              kept[#kept + 1] = sub(holds, at, at + 31)
              sum = sum + amount
              first, last = math.min(first, expires), math.max(last, expires)
            end
          end
          holds, next = table.concat(kept), first
          need = math.max(need, last)
        end
        if op == 1 and more > 0 and anonymous + sum + more > a and not shadow then
          return nil
        end
        if more ~= 0 and holder then
          local at = string.find(holds, holder, 1, true)
          while at and at % 32 ~= 1 do
            at = string.find(holds, holder, at + 1, true)
          end
          if at then
            local amount, expires = un('<dd', holds, at + 16)
            local has = amount + more
            if more > 0 then
              expires = now + given
            end
            if has < 0 then
              has = 0
            end
            sum = sum + has - amount
            local hold = has > 0 and holder .. pk('<dd', has, expires) or ''
            holds = sub(holds, 1, at - 1) .. hold .. sub(holds, at + 32)
            next = math.min(next, expires)
            need = math.max(need, expires)
          elseif more > 0 then
            local expires = now + given
            holds = holds .. holder .. pk('<dd', more, expires)
            sum = sum + more
            next = math.min(next, expires)
            need = math.max(need, expires)
          end
        elseif more ~= 0 then
          anonymous = anonymous + more
          if anonymous < 0 then
            anonymous = 0
          end
        end
        if anonymous > BOUND or sum > BOUND then
          return false
        end
        if holds == '' then
          next = math.huge
        end
        forever = forever or anonymous > 0
        left = a - anonymous - sum
        parts[k + 1] = pk('<ddddd', used, anonymous, sum, next, #holds) .. holds
      elseif kind == 4 or kind == 5 then
        -- A quota of `a`: for `b` after the first use, or up to the edge `c` if it is opened from `b` on.
        local count, start, ends
        used, count, start, ends = un('<dddd', v, p)
        p = p + 32
        if ends ~= 0 and t >= ends then
          if kind == 4 then
            local ended = floor((t - ends) / b) + 1
            count = count - ended * a
            start, ends = start + ended * b, ends + ended * b
          else
            count = count - a
            if count > 0 then
              return false
            end
          end
          if count <= 0 then
            count, start, ends = 0, 0, 0
          end
        end
        if op == 1 and more > 0 and a - count < more and not shadow then
          return nil
        end
        if more > 0 then
          if ends == 0 then
            if kind == 4 then
              start, ends = t, t + b
            elseif b <= t and t < c then
              start, ends = t, c
            else
              return false
            end
          end
          count = count + more
        elseif more < 0 and given >= start then
          count = math.max(0, count + more)
        end
        if count > BOUND then
          return false
        end
        left = a - count
        if ends ~= 0 and kind == 4 then
          need = math.max(need, ends + math.max(0, math.ceil(count / a) - 1) * b)
        elseif count > a then
          forever = true
        elseif count > 0 then
          need = math.max(need, ends)
        end
        if counted then
          used = used + booked
        end
        parts[k + 1] = pk('<dddd', used, count, start, ends)
      elseif kind == 6 then
        -- A sliding window: `a` in every period of `b`, in steps of `c`; 16 bytes for each entry: when, how much.
        local count, debt, len
        used, count, debt, len = un('<dddd', v, p)
        local from, to = p + 32, p + 31 + len
        p = p + 32 + len
        if debt ~= 0 then
          return false
        end
        while from < to do
          local at, amount = un('<dd', v, from)
          if at + b > t then
            break
          end
          count, from = count - amount, from + 16
        end
        local log = sub(v, from, to)
        if more > 0 then
          if count + more > a then
            return nil
          end
          local at, amount = 0, 0
          if log ~= '' then
            at, amount = un('<dd', log, #log - 15)
          end
          if amount > 0 and floor(at / b) == floor(t / b) and floor(at % b / c) == floor(t % b / c) then
            log = sub(log, 1, -17) .. pk('<dd', t, amount + more)
          else
            log = log .. pk('<dd', t, more)
          end
          count = count + more
        elseif more < 0 then
          local turn, step = floor(given / b), floor(given % b / c)
          for place = #log - 15, 1, -16 do
            local at, amount = un('<dd', log, place)
            local its_turn, its_step = floor(at / b), floor(at % b / c)
            if its_turn == turn and its_step == step then
              local freed = math.min(-more, amount)
              local entry = amount > freed and pk('<dd', at, amount - freed) or ''
              log = sub(log, 1, place - 1) .. entry .. sub(log, place + 16)
              count = count - freed
              break
            elseif its_turn < turn or its_turn == turn and its_step < step then
              break
            end
          end
        end
        left = a - count
        if log ~= '' then
          need = math.max(need, un('<d', log, #log - 15) + b)
        end
        if counted then
          used = used + booked
        end
        parts[k + 1] = pk('<dddd', used, count, 0, #log) .. log
      elseif kind == 7 then
        -- A cooldown: until when no call passes. What is charged beyond one closes it for as many ticks.
        local lasting
        used, lasting = un('<dd', v, p)
        p = p + 16
        lasting = math.max(0, lasting - (t - stamp))
        if op == 1 and more > 0 and lasting > 0 then
          return nil
        end
        if more > 0 then
          lasting = math.max(lasting, more - 1)
        end
        need = math.max(need, t + lasting)
        if counted then
          used = used + booked
        end
        parts[k + 1] = pk('<dd', used, lasting)
      else
        used = un('<d', v, p)
        p = p + 8
        if counted then
          used = used + booked
        end
        parts[k + 1] = pk('<d', used)
      end
      if kind ~= 1 and left < below then
        warnings = warnings + bit
      end
      local claim = op == 1 and in_turn and places[64 * i + k]
      if claim and claimed(claim, left) > left then
        held = claim
        return nil
      end
      if used > BOUND or used < -BOUND then
        return false
      end
      bit = bit * 2
    end
    local keep = 0
    if forever then
      lasts = 0
    elseif lasts == 0 or lasts < need + SLACK then
      lasts = math.ceil(need / 2) * 2 + AHEAD
      keep = math.ceil((lasts - now) / 1000)
    else
      keep = -1
    end
    parts[1] = sub(v, 1, 17) .. pk('<ddddd', hour, was, t, lasts + mark, events)
    parts[n + 2] = text
    written[i], keeps[i] = table.concat(parts), keep
    outcome[i] = op == 1 and '\1' .. pk('<I8I4', t, warnings) or '\2'
  end
  return true
end

local worked = work()
if worked then
  local answer = table.concat(outcome)
  if not redis.call('SET', KEYS[1], answer, 'NX', 'PX', ARGV[2]) then
    return redis.call('GET', KEYS[1])
  end
  for i = 1, steps do
    local keep = keeps[i]
    -- A clock that is given is no clock of the server's, so nothing expires by that.
    if keep == 0 or ARGV[1] ~= '' then
      redis.call('SET', KEYS[i + 1], written[i])
    elseif keep < 0 then
      redis.call('SET', KEYS[i + 1], written[i], 'KEEPTTL')
    else
      redis.call('SET', KEYS[i + 1], written[i], 'PX', keep)
    end
  end
  if in_turn then
    for _, claim in ipairs(claims) do
      if is_waiting then
        redis.call('ZREM', claim.queue, waiter)
        redis.call('HDEL', claim.list, waiter .. claim.name)
        register(claim, false)
      end
    end
    for i = 1, steps do
      marked(i, written[i])
    end
  end
  return answer
end
local was = redis.call('GET', KEYS[1])
if was then
  return was
end
if in_turn then
  for _, claim in ipairs(claims) do
    -- What a script cannot work out may pass only if no waiter is ahead: how much would be left is not known.
    if worked == false and not held and claimed(claim, 0) > 0 then
      held = claim
    end
  end
  local ahead = 0
  for _, claim in ipairs(claims) do
    -- A value of another form cannot say that there are waiters, so no call would look for their claims.
    local form = sub(values[claim.step] or '', 1, 1)
    if is_waiting and (form == 'M' or form == 'W') then
      register(claim, claim.own or claim == held)
      ahead = math.max(ahead, redis.call('ZRANK', claim.queue, waiter) or 0)
    end
  end
  for i = 1, steps do
    values[i] = marked(i, values[i])
  end
  status = pk('<ddd', held and held.step or 0, held and held.place or 0, ahead)
end
local seen = { now }
for i = 1, steps do
  seen[i + 1] = values[i] == '' and '?' or values[i] or ''
end
if in_turn then
  seen[steps + 2] = status
end
return seen
