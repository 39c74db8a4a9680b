-- pq_states: what state each message of a range is in, and how often it has been delivered. A call looks at a bounded number.
-- KEYS   queue
-- ARGV   from, to (sequence numbers)
-- REPLY  {next, first, states, deliveries, first, states, deliveries, ...}: a triple for each segment of the range that holds
--        messages. States: a letter for each message from `first` on, a active (a receiver could have it), l locked or claimed,
--        d deferred, s scheduled, - gone. Deliveries: u16 for each of these, '' where all are 0 (locked ones count as 0).
--        next: the sequence number to go on from; 0: this was all
local SEGMENTS_A_CALL = 64
local BYTES_READ = 4194304 -- of messages whose session must be known, in one call

-- Whether a message that has not gone and is not parked is ready: a function of a sequence number that gives its deliveries, or
-- nil where it is locked or claimed.
local function readiness(s, returned)
  if not s.config.has_sessions then
    return function(sequence)
      if sequence > s.head then return 0 end
      return returned[sequence]
    end
  end
  return function(sequence, body)
    local id = session_id_of(body)
    local its = id and session_of(s, id)
    return its and its.count > 0 and deliveries_in(s, its, sequence) or nil
  end
end

local function returned_in(s, base)
  local returned = {}
  if s.returned == 0 then return returned end
  local ids = call('ZRANGE', s.queue .. ':returned', base, base + SEGMENT - 1, 'BYSCORE')
  for i = 1, #ids do
    local run = run_of(s, ids[i])
    each_stretch(run, function(first, last)
      for sequence = first, last do returned[sequence] = run.deliveries end
    end)
  end
  return returned
end

-- The states and deliveries of first..last of one segment, and the last that was looked at.
local function look(s, segment, first, last, read)
  local base, _, _, _, gone = segment * SEGMENT + 1, gone_of(s, segment)
  local deferred = s.deferred > 0 and deferred_of(s, segment) or EMPTY
  local scheduled = s.scheduled > 0 and scheduled_bits(s, segment)
  if not s.config.has_sessions and first > s.head and gone == NO_BITS and deferred == EMPTY and not scheduled then
    return rep('a', last - first + 1), '', last
  end
  local ready_as = readiness(s, returned_in(s, base))
  local states, deliveries, any = {}, {}, false
  for sequence = first, last do
    local index, letter, times = sequence - base, '-', 0
    if not bit_is_set(gone, index) then
      if deferred[index] then
        letter, times = 'd', deferred[index]
      elseif scheduled and bit_is_set(scheduled, index) then
        letter = 's'
      else
        local body = s.config.has_sessions and bodies_of(s.queue, segment, sequence, sequence)[1]
        read.bytes = read.bytes + (body and #body or 0)
        times = ready_as(sequence, body)
        letter, times = times and 'a' or 'l', times or 0
      end
    end
    any = any or times > 0
    states[#states + 1], deliveries[#deliveries + 1] = letter, pack('<I2', times)
    if read.bytes > BYTES_READ then
      last = sequence
      break
    end
  end
  return table.concat(states), any and table.concat(deliveries) or '', last
end

command('pq_states', function(queue, argv)
  local from, to = whole(argv[1], 1, 2 ^ 48), whole(argv[2], 1, 2 ^ 48)
  if not from or not to then return refusal('BADCALL', 'pq_states takes two sequence numbers') end
  local s = load_state(queue)
  to = min(to, s.tail)
  local reply, read = { 0 }, { bytes = 0 }
  if to < from then return reply end
  local segments = call('ZRANGE', queue .. ':segments', segment_of(from), segment_of(to), 'BYSCORE', 'LIMIT', 0, SEGMENTS_A_CALL)
  for i = 1, #segments do
    local segment = tonumber(segments[i])
    local first, last = max(from, segment * SEGMENT + 1), min(to, (segment + 1) * SEGMENT)
    local states, deliveries, seen = look(s, segment, first, last, read)
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = first, states, deliveries
    if read.bytes > BYTES_READ then
      reply[1] = seen < to and seen + 1 or 0
      return reply
    end
  end
  if #segments == SEGMENTS_A_CALL then reply[1] = (tonumber(segments[#segments]) + 1) * SEGMENT + 1 end
  if reply[1] > to then reply[1] = 0 end
  return reply
end, READS)
