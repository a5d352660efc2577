-- Removes the claims of a waiter that left.
--
-- KEYS: for each claim the bucket, the claims on it, and the waiters for the limit.
-- ARGV: the waiter, then the name of the limit of each claim.

for j = 1, #ARGV - 1 do
  local bucket, list, queue = KEYS[3 * j - 2], KEYS[3 * j - 1], KEYS[3 * j]
  redis.call('ZREM', queue, ARGV[1])
  redis.call('HDEL', list, ARGV[1] .. ARGV[j + 1])
  if redis.call('EXISTS', list) == 0 then
    -- The mark of a wide value is left to the next take, which finds that there are no claims.
    local head = redis.call('GETRANGE', bucket, 0, 48)
    local lasts = string.sub(head, 1, 1) == 'M' and #head == 49 and struct.unpack('<d', head, 42) or 0
    if lasts % 2 == 1 then
      redis.call('SETRANGE', bucket, 41, struct.pack('<d', lasts - 1))
    end
  end
end
return 1
