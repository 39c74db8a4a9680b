-- pq_purge: empties the queue, a bounded part a call. What is locked or claimed stays.
-- KEYS   queue
-- ARGV   which states (letters of a d s: active, deferred, scheduled), up to which sequence number (0: the last one of now),
--        cursor (0 at first); and, with the letter a alone, how many at most and enqueued before when (ms): the first of them
-- REPLY  {purged, up to, cursor}: call again with these, and as many less at most, until the cursor is 0

-- The last of first..last of one segment before which, and itself, all were enqueued before a time.
local function last_before(s, segment, first, last, time)
  local stop = last
  each_mark(times_of(s, segment, first, last), segment, first, last, function(from, _, at)
    if at >= time then stop = min(stop, from - 1) end
  end)
  return stop
end

command('pq_purge', function(queue, argv)
  local states, upto, cursor = argv[1], whole(argv[2], 0, 2 ^ 48), whole(argv[3], 0, 2 ^ 48)
  local most, time = whole(argv[4] or 2 ^ 48, 1, 2 ^ 48), whole(argv[5] or 2 ^ 48, 0, 2 ^ 53)
  if not states or not upto or not cursor or not most or not time or not string.find(states, '^[ads]+$')
    or (argv[4] and states ~= 'a')
  then
    return refusal('BADCALL', 'pq_purge takes letters of a d s, a sequence number and a cursor; with a alone how many and a time, too')
  end
  local now = now_ms()
  local s = load_state(queue)
  sweep(s, now)
  if upto == 0 then upto = s.tail end
  s.work = 0
  local before, from = s.messages, max(cursor - 1, 0)
  local active, deferred, scheduled = string.find(states, 'a'), string.find(states, 'd'), string.find(states, 's')
  local segments = call('ZRANGE', queue .. ':segments', from, segment_of(upto), 'BYSCORE', 'LIMIT', 0, WORK_A_CALL)
  local next_segment, finished = -1, false
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
    local sequence, stop = base, argv[4] and last_before(s, segment, base, last, time) or last
    local cut = false
    while active and sequence <= stop and most > 0 and not cut do
      local till = min(stop, sequence + most - 1)
      cut = withdraw(s, segment, sequence, till, function(first, its_last)
        remove(s, segment, first, its_last, bytes_of(s.queue, segment, first, its_last))
        s.work, most = s.work + 1, most - (its_last - first + 1)
      end)
      sequence = till + 1
    end
    finished = most == 0 or (stop < last and not cut)
    if finished then break end
    if cut then
      next_segment = segment
      break
    end
    s.work = s.work + 1
  end
  if next_segment < 0 and not finished and #segments == WORK_A_CALL then next_segment = tonumber(segments[#segments]) + 1 end
  local purged = before - s.messages
  tidy(s)
  save(s)
  return { purged, upto, next_segment + 1 }
end, FREES)
