-- Parked messages stay where they are in their segment and are not handed out in order: deferred ones come back by their
-- number, scheduled ones when their time has come.
-- `d<segment>`: 3 bytes for each deferred message, u8 index and u16 deliveries. `h<segment>`: one bit for each scheduled one.
-- `<queue>:scheduled:<segment>`: 8 bytes for each that was scheduled, u16 index and u48 time.

local DEFERRED = '<BI2'

function scheduled_key(queue, segment)
  return queue .. ':scheduled:' .. segment
end

-- Index → deliveries of a segment's deferred messages.
function deferred_of(s, segment)
  local record, of = get(s, 'd' .. segment) or '', {}
  for at = 1, #record, 3 do
    local index, deliveries = unpack_struct(DEFERRED, record, at)
    of[index] = deliveries
  end
  return of
end

local function put_deferred(s, segment, of)
  local parts = {}
  for index = 0, SEGMENT - 1 do
    if of[index] then parts[#parts + 1] = pack(DEFERRED, index, of[index]) end
  end
  if #parts > 0 then put(s, 'd' .. segment, table.concat(parts)) else drop(s, 'd' .. segment) end
end

-- Defers messages first..last, delivered so often, that nobody holds any more.
function defer(s, first, last, deliveries)
  local segment, parts = segment_of(first), {}
  local base = segment * SEGMENT + 1
  for sequence = first, last do parts[#parts + 1] = pack(DEFERRED, sequence - base, min(deliveries, 65535)) end
  put(s, 'd' .. segment, (get(s, 'd' .. segment) or '') .. table.concat(parts))
  s.deferred = s.deferred + last - first + 1
end

-- The deliveries of a deferred message, and it is deferred no more; nil where it is not.
function undefer(s, sequence)
  local segment = segment_of(sequence)
  local record, index = get(s, 'd' .. segment), sequence - segment * SEGMENT - 1
  for at = 1, record and #record or 0, 3 do
    if byte(record, at) == index then
      local _, deliveries = unpack_struct(DEFERRED, record, at)
      local rest = sub(record, 1, at - 1) .. sub(record, at + 3)
      if rest == '' then drop(s, 'd' .. segment) else put(s, 'd' .. segment, rest) end
      s.deferred = s.deferred - 1
      return deliveries
    end
  end
end

function is_deferred(s, sequence)
  local segment = segment_of(sequence)
  local record, index = get(s, 'd' .. segment), sequence - segment * SEGMENT - 1
  for at = 1, record and #record or 0, 3 do
    if byte(record, at) == index then return true end
  end
  return false
end

function scheduled_bits(s, segment)
  NO_BITS = NO_BITS or rep('\0', SEGMENT / 8)
  return get(s, 'h' .. segment) or NO_BITS
end

function is_scheduled(s, sequence)
  local segment = segment_of(sequence)
  return bit_is_set(scheduled_bits(s, segment), sequence - segment * SEGMENT - 1)
end

-- A message beyond head that will not be handed out in order leaves a hole there.
function leave_hole(s, first, last)
  if s.config.has_sessions or last <= s.head then return end
  if first == s.head + 1 then
    s.head = last
  else
    s.holes = s.holes + last - first + 1
  end
end

function schedule(s, sequence, at)
  local segment = segment_of(sequence)
  local index = sequence - segment * SEGMENT - 1
  put(s, 'h' .. segment, change_bits(scheduled_bits(s, segment), index, index, true))
  call('APPEND', scheduled_key(s.queue, segment), pack('<I2I6', index, at))
  add_due_sooner(s, 's' .. segment, at)
  s.scheduled = s.scheduled + 1
  leave_hole(s, sequence, sequence)
end

-- The message is scheduled no more; whoever calls takes it out of the queue.
function unschedule(s, sequence)
  local segment = segment_of(sequence)
  local index = sequence - segment * SEGMENT - 1
  local bits = change_bits(scheduled_bits(s, segment), index, index, false)
  s.scheduled = s.scheduled - 1
  if string.find(bits, '[^%z]') then
    put(s, 'h' .. segment, bits)
  else
    drop(s, 'h' .. segment)
    call('UNLINK', scheduled_key(s.queue, segment))
    not_due(s, 's' .. segment)
  end
end
