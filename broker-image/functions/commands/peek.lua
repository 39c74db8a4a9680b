-- pq_peek: shows messages without taking them, locked and claimed ones too.
-- KEYS   queue
-- ARGV   from this sequence number, messages at most (1..1000), bytes at most (the first message comes whatever its size)
-- REPLY  {run, run, ...}, run = {first sequence number, enqueued-time marks, {message, message, ...}}
command('pq_peek', function(queue, argv)
  local from, most, bytes_most = whole(argv[1], 1, 2 ^ 48), whole(argv[2], 1, 1000), whole(argv[3], 0, 2 ^ 40)
  if not from or not most or not bytes_most then
    return refusal('BADCALL', 'pq_peek takes a sequence number, 1..1000 messages and bytes')
  end
  local state = load_state(queue, 'tail')
  local tail, reply, seen, bytes = number(state, 'tail'), {}, 0, 0
  local segments = call('ZRANGE', queue .. ':segments', text(segment_of(from)), '+inf', 'BYSCORE', 'LIMIT', 0, most)
  for s = 1, #segments do
    local segment = tonumber(segments[s])
    local base, _, _, gone = segment * SEGMENT + 1, gone_of(state, segment)
    local sequence = max(from, base)
    local stop = min(tail, base + SEGMENT - 1)
    while sequence <= stop do
      while sequence <= stop and bit_is_set(gone, sequence - base) do sequence = sequence + 1 end
      local first = sequence
      while sequence <= stop and sequence - first < min(16, most - seen) and not bit_is_set(gone, sequence - base) do
        sequence = sequence + 1
      end
      if sequence > first then
        local bodies = bodies_of(queue, segment, first, sequence - 1)
        local fitting = 0
        while fitting < #bodies and (seen + fitting == 0 or bytes + #bodies[fitting + 1] <= bytes_most) do
          fitting = fitting + 1
          bytes = bytes + #bodies[fitting]
        end
        local full = fitting < #bodies
        for i = fitting + 1, #bodies do bodies[i] = nil end
        if fitting > 0 then
          reply[#reply + 1] = { first, times_of(queue, segment, first, first + fitting - 1), bodies }
        end
        seen = seen + fitting
        if full or seen == most then return reply end
      end
    end
  end
  return reply
end, { 'no-writes' })
