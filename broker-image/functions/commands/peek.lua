-- pq_peek: shows messages without taking them, locked and claimed ones too. A call looks at a bounded number of messages.
-- KEYS   queue
-- ARGV   from this sequence number, messages at most (1..1000), bytes at most (the first message comes whatever its size),
--        states ('' all, or letters of a d s: active, deferred, scheduled), and a session where only its are to be shown
-- REPLY  {next, run, ...}, run = {first sequence number, state (0 active, 1 deferred, 2 scheduled), deliveries so far (of
--        deferred and of returned ones; otherwise 0), enqueued-time marks, {message, message, ...}}
--        next: the sequence number to go on from; 0: this was all
local SEGMENTS_A_PEEK = 64
local PEEK_BYTES_READ = 4194304 -- in one call, shown or not

-- State and deliveries of each message of a segment from `sequence` on: a function of a sequence number, nil where it is gone.
local function states_in(s, segment)
  local base, _, _, _, gone = segment * SEGMENT + 1, gone_of(s, segment)
  local deferred = s.deferred > 0 and deferred_of(s, segment) or EMPTY
  local scheduled = s.scheduled > 0 and scheduled_bits(s, segment)
  local returned = {}
  if s.returned > 0 then
    local ids = call('ZRANGE', s.queue .. ':returned', base, base + SEGMENT - 1, 'BYSCORE')
    for i = 1, #ids do
      local run = run_of(s, ids[i])
      each_stretch(run, function(first, last)
        for sequence = first, last do returned[sequence] = run.deliveries end
      end)
    end
  end
  return function(sequence)
    local index = sequence - base
    if bit_is_set(gone, index) then return nil end
    if deferred[index] then return 1, deferred[index] end
    if scheduled and bit_is_set(scheduled, index) then return 2, 0 end
    return 0, returned[sequence] or 0
  end
end

command('pq_peek', function(queue, argv)
  local from, most, bytes_most = whole(argv[1], 1, 2 ^ 48), whole(argv[2], 1, 1000), whole(argv[3], 0, 2 ^ 40)
  local states, session = argv[4], argv[5]
  if not from or not most or not bytes_most or not states or not string.find(states, '^[ads]*$') then
    return refusal('BADCALL', 'pq_peek takes a sequence number, 1..1000 messages, bytes, letters of a d s, and may take a session')
  end
  local wanted = states == '' and { true, true, true }
    or { string.find(states, 'a') ~= nil, string.find(states, 'd') ~= nil, string.find(states, 's') ~= nil }
  local s = load_state(queue)
  local reply, seen, bytes, read = { 0 }, 0, 0, 0
  local segments = call('ZRANGE', queue .. ':segments', segment_of(from), '+inf', 'BYSCORE', 'LIMIT', 0, SEGMENTS_A_PEEK)
  for i = 1, #segments do
    local segment = tonumber(segments[i])
    local base = segment * SEGMENT + 1
    local stop, state_in = min(s.tail, base + SEGMENT - 1), states_in(s, segment)
    local sequence = max(from, base)
    while sequence <= stop do
      local state, deliveries = state_in(sequence)
      if not state or not wanted[state + 1] then
        sequence = sequence + 1
      elseif read > PEEK_BYTES_READ then
        reply[1] = sequence
        return reply
      else
        local first, last = sequence, sequence
        while last < stop and last - first < 15 and last - first + 1 < most - seen do
          local its_state, its_deliveries = state_in(last + 1)
          if its_state ~= state or its_deliveries ~= deliveries then break end
          last = last + 1
        end
        local bodies, fitting = bodies_of(queue, segment, first, last), {}
        local run_first = first
        for j = 1, #bodies do read = read + #bodies[j] end
        local function show()
          if #fitting == 0 then return end
          reply[#reply + 1] = { run_first, state, deliveries,
            times_of(s, segment, run_first, run_first + #fitting - 1), fitting }
          fitting = {}
        end
        for j = 1, #bodies do
          if session and session_id_of(bodies[j]) ~= session then
            show()
            run_first = first + j
          elseif seen == most or (seen > 0 and bytes + #bodies[j] > bytes_most) then
            show()
            reply[1] = first + j - 1
            return reply
          else
            fitting[#fitting + 1] = bodies[j]
            seen, bytes = seen + 1, bytes + #bodies[j]
          end
        end
        show()
        sequence = last + 1
        if seen == most then
          reply[1] = sequence <= s.tail and sequence or 0
          return reply
        end
      end
    end
  end
  if #segments == SEGMENTS_A_PEEK then reply[1] = (tonumber(segments[#segments]) + 1) * SEGMENT + 1 end
  if reply[1] > s.tail then reply[1] = 0 end
  return reply
end, READS)
