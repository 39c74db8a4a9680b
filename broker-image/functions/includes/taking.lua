-- The next messages in order, for a receiver or a claim. What has expired meanwhile leaves first.

-- How much of first..last (one segment) is to be had now: how many of the first have expired, and the last before the next
-- that has.
function unexpired(s, now, first, last)
  if s.timed == 0 then return 0, last end
  local segment, expired, stop = segment_of(first), 0, last
  local marks = expiry_marks_of(s, segment, first, last)
  each_mark(marks, segment, first, last, function(from, till, at)
    if at > 0 and at <= now then
      if from == first + expired then expired = till - first + 1 elseif from <= stop then stop = from - 1 end
    end
  end)
  return expired, stop
end

-- Passes over up to a segment's worth of holes behind head; the last message before the next hole, at most `last`.
local function pass_holes(s, last)
  local segment = segment_of(s.head + 1)
  local base = segment * SEGMENT + 1
  local gone, scheduled = absent_from(s, segment), scheduled_bits(s, segment)
  local function is_hole(sequence)
    return bit_is_set(gone, sequence - base) or bit_is_set(scheduled, sequence - base)
  end
  local from = s.head
  while s.head < last and is_hole(s.head + 1) do
    s.head, s.holes = s.head + 1, s.holes - 1
  end
  local stop = s.head
  while stop < last and not is_hole(stop + 1) do stop = stop + 1 end
  s.work = s.work + 0.25 + (stop - from) / 64
  return stop
end

-- From the lowest returned run, stopping short of the next one: order is kept.
local function take_returned(s, now, most)
  while s.returned > 0 do
    if s.work >= WORK_A_CALL then
      s.more = true
      return nil
    end
    local lowest = call('ZRANGE', s.queue .. ':returned', 0, 1, 'WITHSCORES')
    local run = run_of(s, lowest[1])
    local from = first_held(run)
    local stop = min(run.count, lowest[4] and tonumber(lowest[4]) - run.first or run.count)
    local to = from
    while to - from + 1 < most and to + 1 < stop and holds(run, to + 1) do to = to + 1 end
    local first, deliveries = run.first + from, run.deliveries
    local expired, last = unexpired(s, now, first, run.first + to)
    shrink_returned(s, run, first, expired > 0 and first + expired - 1 or last)
    s.work = s.work + 0.1
    if expired == 0 then return first, last, deliveries end
    expire(s, first, first + expired - 1, deliveries)
  end
end

-- At most `most` messages of one segment and one delivery count: first, last, deliveries so far. They belong to the caller
-- afterwards. Returned ones come first, each at its old place. Nil where there are none, or (s.more) not in this call.
function take(s, now, most)
  local first, last, deliveries = take_returned(s, now, most)
  if first or s.more then return first, last, deliveries end
  while s.head < s.tail do
    if s.work >= WORK_A_CALL then
      s.more = true
      return nil
    end
    first, last = s.head + 1, min(s.head + most, s.tail, (segment_of(s.head + 1) + 1) * SEGMENT)
    if s.holes > 0 then
      last = pass_holes(s, last)
      first = s.head + 1
    end
    if first <= last then
      local expired
      expired, last = unexpired(s, now, first, last)
      if expired == 0 then
        s.head = last
        return first, last, 0
      end
      s.head = first + expired - 1
      expire(s, first, s.head, 0)
    end
  end
end

-- The same from a session.
function take_from_session(s, its, now, most)
  while its.count > 0 and has_front(its, s) do
    if s.work >= WORK_A_CALL then
      s.more = true
      return nil
    end
    local first, length, deliveries = unpack_struct(ENTRY, its.front)
    local last = min(first + min(most, length) - 1, (segment_of(first) + 1) * SEGMENT)
    local hole = false
    if its.holes > 0 then
      local base, gone = segment_of(first) * SEGMENT + 1, absent_from(s, segment_of(first))
      hole = bit_is_set(gone, first - base)
      local stop = first
      while stop < last and bit_is_set(gone, stop + 1 - base) == hole do stop = stop + 1 end
      last = stop
    end
    if hole then
      its.holes = its.holes - (last - first + 1)
      take_front(its, last - first + 1)
      s.work = s.work + 1
    else
      local expired
      expired, last = unexpired(s, now, first, last)
      local count = expired > 0 and expired or last - first + 1
      take_front(its, count)
      its.count = its.count - count
      its.taken = max(its.taken, first + count - 1)
      if expired == 0 then return first, last, deliveries end
      expire(s, first, first + expired - 1, deliveries)
    end
  end
end

-- The returned run that holds a message, or nil.
local function returned_run_of(s, sequence)
  if s.returned == 0 or sequence > s.head then return nil end
  local base = segment_of(sequence) * SEGMENT + 1
  local ids = call('ZRANGE', s.queue .. ':returned', base, sequence, 'BYSCORE')
  for i = 1, #ids do
    local run = run_of(s, ids[i])
    if sequence < run.first + run.count and sequence >= run.first and holds(run, sequence - run.first) then return run end
  end
end

-- Whether a message of a queue without sessions is ready.
function is_ready(s, sequence)
  if sequence > s.tail then return false end
  if sequence <= s.head then return returned_run_of(s, sequence) ~= nil end
  local gone = absent_from(s, segment_of(sequence))
  return not bit_is_set(gone, (sequence - 1) % SEGMENT) and not is_scheduled(s, sequence)
end

-- The first ready message of a queue without sessions, and the last that may follow it: more or less, nil where there is none.
function next_ready(s)
  if s.returned > 0 then
    local lowest = call('ZRANGE', s.queue .. ':returned', 0, 0)
    local run = run_of(s, lowest[1])
    return run.first + first_held(run), run.first + run.count - 1
  end
  if s.head < s.tail then return s.head + 1, s.tail end
end
