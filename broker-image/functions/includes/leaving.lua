-- Ways out of the queue: to the dead-letter queue, or back to where a message came from when its lock is over.

WORK_A_CALL = 128 -- pieces of due work in one call: one to three milliseconds
WORK_BYTES = 16384 -- moving so many bytes is a piece of work
local EXPIRED, EXCEEDED -- changes that say why

local function reasons()
  EXPIRED = amqp_map('DeadLetterReason', 'TTLExpiredException', 'DeadLetterErrorDescription',
    'The message expired and was dead lettered.')
  EXCEEDED = amqp_map('DeadLetterReason', 'MaxDeliveryCountExceeded', 'DeadLetterErrorDescription',
    'The message could not be consumed within the maximum number of deliveries.')
end

-- Moves first..last of one segment, which nobody holds any more, to another queue's tail; `turn` makes the new body.
local function move(s, to, first, last, turn)
  local segment = segment_of(first)
  local bodies, times, bytes = bodies_of(s.queue, segment, first, last), times_of(s, segment, first, last), 0
  for i = 1, #bodies do
    bytes = bytes + #bodies[i]
    bodies[i] = turn(bodies[i], first + i - 1)
  end
  each_mark(times, segment, first, last, function(from, till, at)
    append(to, at, bodies, from - first + 1, till - first + 1)
  end)
  remove(s, segment, first, last, bytes)
  s.work = s.work + 3 + last - first + bytes / WORK_BYTES
end

function dead_letter(s, first, last, deliveries, changes)
  move(s, sub_queue(s, '/$DeadLetterQueue'), first, last, function(body, sequence)
    return moved(body, deliveries, sequence, changes)
  end)
end

-- What has expired leaves for the dead-letter queue, where its owner wants that, otherwise for good.
function expire(s, first, last, deliveries)
  if s.config.dead_letter_expired == 1 then
    if not EXPIRED then reasons() end
    return dead_letter(s, first, last, deliveries, EXPIRED)
  end
  local segment = segment_of(first)
  local bytes = bytes_of(s.queue, segment, first, last)
  remove(s, segment, first, last, bytes)
  s.work = s.work + 1 + (last - first + 1 < SEGMENT and bytes / WORK_BYTES / 4 or 0)
end

-- The least expiry among first..last of one segment, 0 where there is none.
local function least_expiry(s, first, last)
  local segment, least = segment_of(first), 0
  local marks = expiry_marks_of(s, segment, first, last)
  each_mark(marks, segment, first, last, function(_, _, at)
    if at > 0 and (least == 0 or at < least) then least = at end
  end)
  return least
end

-- Messages first..last (one segment, no longer held by anybody) go back to where they came from, each at its old place.
-- `deliveries` is how often they were delivered so far; `its` their session, where they have one. Counted deliveries may
-- have become too many.
function give_back(s, first, last, deliveries, was_deferred, its, counted)
  local most = s.config.max_deliveries
  if counted and most > 0 and deliveries >= most then
    if not EXCEEDED then reasons() end
    return dead_letter(s, first, last, deliveries, EXCEEDED)
  end
  s.work = s.work + 1
  if was_deferred then return defer(s, first, last, deliveries) end
  if s.timed > 0 then
    local least = least_expiry(s, first, last)
    if least > 0 then add_due_sooner(s, 'x' .. segment_of(first), least) end
  end
  if its then
    add_back(its, first, last, deliveries)
  else
    return_run(s, first, last - first + 1, deliveries, '')
  end
end

-- Finds the ready messages among first..last of one segment: calls part(first, last, deliveries) for stretches of them, which
-- then are ready no more and belong to the caller. True where it was cut short, because there has been enough work for one
-- call: what it found by then has left, so that the next call comes further.
function withdraw(s, segment, first, last, part)
  local base = segment * SEGMENT + 1
  local gone = absent_from(s, segment)
  local scheduled = scheduled_bits(s, segment)
  local function absent(sequence)
    return bit_is_set(gone, sequence - base) or bit_is_set(scheduled, sequence - base)
  end
  last = min(last, s.tail)
  if s.config.has_sessions then
    for sequence = first, last do
      if s.work >= WORK_A_CALL then return true end
      if not absent(sequence) and not is_deferred(s, sequence) then
        local id = session_id_of(bodies_of(s.queue, segment, sequence, sequence)[1])
        local its = id and session_of(s, id)
        local deliveries = its and its.count > 0 and deliveries_in(s, its, sequence)
        if deliveries then
          leave_session(its)
          part(sequence, sequence, deliveries)
        end
        s.work = s.work + 0.05 -- a segment of them, all held by receivers, must not be all that a call ever does
      end
    end
    return false
  end
  if s.returned > 0 then
    local ids = call('ZRANGE', s.queue .. ':returned', base, base + SEGMENT - 1, 'BYSCORE')
    for i = 1, #ids do
      local run = run_of(s, ids[i])
      local sequence = max(first, run.first)
      local stop = min(last, run.first + run.count - 1)
      while sequence <= stop and s.work < WORK_A_CALL do
        local till = sequence
        if holds(run, sequence - run.first) then
          while till < stop and holds(run, till + 1 - run.first) do till = till + 1 end
          shrink_returned(s, run, sequence, till)
          part(sequence, till, run.deliveries)
          if run.count == 0 then break end
        end
        sequence = till + 1
      end
    end
  end
  local sequence = max(first, s.head + 1)
  local untouched = gone == NO_BITS and scheduled == NO_BITS
  while sequence <= last and s.work < WORK_A_CALL do
    if not untouched and absent(sequence) then
      sequence, s.work = sequence + 1, s.work + 0.03
    else
      local till = min(last, sequence + messages_in(s, WORK_BYTES * WORK_A_CALL / 4) - 1)
      if not untouched then
        local stop = till
        till = sequence
        while till < stop and not absent(till + 1) do till = till + 1 end
        s.work = s.work + (till - sequence) * 0.03
      end
      leave_hole(s, sequence, till)
      part(sequence, till, 0)
      sequence = till + 1
    end
  end
  return sequence <= last or s.work >= WORK_A_CALL
end
