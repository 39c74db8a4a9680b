-- pq_purge: empties the queue, a bounded part a call. What is locked or claimed stays.
-- KEYS   queue
-- ARGV   which states (letters of a d s: active, deferred, scheduled), up to which sequence number (0: the last one of now),
--        cursor (0 at first)
-- REPLY  {purged, up to, cursor}: call again with these until the cursor is 0
command('pq_purge', function(queue, argv)
  local states, upto, cursor = argv[1], whole(argv[2], 0, 2 ^ 48), whole(argv[3], 0, 2 ^ 48)
  if not states or not upto or not cursor or not string.find(states, '^[ads]+$') then
    return refusal('BADCALL', 'pq_purge takes letters of a d s, a sequence number and a cursor')
  end
  local now = now_ms()
  local s = load_state(queue)
  sweep(s, now)
  if upto == 0 then upto = s.tail end
  s.work = 0
  local before, from = s.messages, max(cursor - 1, 0)
  local active, deferred, scheduled = string.find(states, 'a'), string.find(states, 'd'), string.find(states, 's')
  local segments = call('ZRANGE', queue .. ':segments', from, segment_of(upto), 'BYSCORE', 'LIMIT', 0, WORK_A_CALL)
  local next_segment = -1
  for i = 1, #segments do
    local segment = tonumber(segments[i])
    local base, last = segment * SEGMENT + 1, min(upto, (segment + 1) * SEGMENT)
    if s.work >= WORK_A_CALL then
      next_segment = segment
      break
    end
    local function take_out(sequence)
      remove(s, segment, sequence, sequence, bytes_of(queue, segment, sequence, sequence))
      s.work = s.work + 0.5
    end
    if deferred and s.deferred > 0 then
      for index in pairs(deferred_of(s, segment)) do
        if base + index <= last then
          undefer(s, base + index)
          take_out(base + index)
        end
      end
    end
    if scheduled and s.scheduled > 0 then
      local bits = scheduled_bits(s, segment)
      for index = 0, last - base do
        if bit_is_set(bits, index) then
          unschedule(s, base + index)
          take_out(base + index)
        end
      end
    end
    if active then
      local cut = withdraw(s, segment, base, last, function(first, till)
        remove(s, segment, first, till, bytes_of(s.queue, segment, first, till))
        s.work = s.work + 1
      end)
      if cut then
        next_segment = segment
        break
      end
    end
    s.work = s.work + 1
  end
  if next_segment < 0 and #segments == WORK_A_CALL then next_segment = tonumber(segments[#segments]) + 1 end
  local purged = before - s.messages
  tidy(s)
  save(s)
  return { purged, upto, next_segment + 1 }
end, FREES)
