-- pq_receive: hands out the next messages in order, under a lock or for good.
-- KEYS   queue
-- ARGV   messages at most (1..1000; fewer come where they add up to 4 MB), lock duration in ms (0: receive-and-delete)
-- REPLY  {now in ms, locked until in ms (0: deleted), run, run, ...}
--        run = {number of the lock, first sequence number, delivery count, enqueued-time marks, {message, message, ...}}
local RECEIVE_BYTES = 4194304 -- a reply ends with the run that reaches it: some ten milliseconds' work

-- How many messages to read at once so that the bytes are looked at in time: by the mean size of what is stored.
local function messages_a_step(state, most)
  if most <= 16 then return most end
  local messages = number(state, 'tail') - number(state, 'gone')
  local mean = (number(state, 'in') - number(state, 'out')) / max(1, messages)
  return max(1, floor(RECEIVE_BYTES / max(1, mean)))
end

command('pq_receive', function(queue, argv)
  local most, lock_ms = whole(argv[1], 1, 1000), whole(argv[2], 0, 300000)
  if not most or not lock_ms then return refusal('BADCALL', 'pq_receive takes 1..1000 messages and 0..300000 ms') end
  local now = now_ms()
  local state = load_state(queue, 'head', 'tail', 'run', 'locked')
  sweep(state, now)
  give_back_lapsed(state, now)
  local until_ms = lock_ms > 0 and now + lock_ms or 0
  local reply, received, sum = { now, until_ms }, 0, 0
  local step = messages_a_step(state, most)
  while received < most and sum < RECEIVE_BYTES do
    local first, last, deliveries = take(state, min(most - received, step))
    if not first then break end
    local segment = segment_of(first)
    local bodies, bytes = bodies_of(queue, segment, first, last), 0
    for i = 1, #bodies do bytes = bytes + #bodies[i] end
    local times, id = times_of(queue, segment, first, last), 0
    if lock_ms > 0 then
      id = tonumber(lock(state, first, last, deliveries + 1, bytes, until_ms).id)
    else
      remove(state, segment, first, last, bytes)
    end
    reply[#reply + 1] = { id, first, deliveries + 1, times, bodies }
    received, sum = received + #bodies, sum + bytes
  end
  save(state)
  return reply
end, { 'allow-oom' })
