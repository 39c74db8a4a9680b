-- pq_receive_deferred: hands out deferred messages by their sequence numbers, all of them or none.
-- KEYS   queue
-- ARGV   session, session lock as in pq_receive, lock duration in ms (-1: the queue's; 0: receive-and-delete), then up to 1000
--        sequence numbers
-- REPLY  {now in ms, locked until in ms, run, ...} as in pq_receive, one run for each
-- ERROR  NOTFOUND  one is not deferred here, or of another session, or has expired; none was handed out
--        DISABLED · SESSIONREQUIRED · NOSESSIONS · SESSIONLOCKLOST · LOCKSFULL

-- Whether this message may be had; one that has expired leaves now, as in Azure.
local function is_there(s, now, sequence, its)
  if not sequence or not is_deferred(s, sequence) then return false end
  if its and session_id_of(bodies_of(s.queue, segment_of(sequence), sequence, sequence)[1]) ~= its.id then return false end
  if unexpired(s, now, sequence, sequence) == 0 then return true end
  expire(s, sequence, sequence, undefer(s, sequence))
  return false
end

command('pq_receive_deferred', function(queue, argv)
  local lock_ms = whole(argv[3], -1, 300000)
  if not lock_ms or #argv < 4 or #argv > 1003 then
    return refusal('BADCALL', 'pq_receive_deferred takes session, session lock, -1..300000 ms and 1..1000 sequence numbers')
  end
  local now = now_ms()
  local s = load_state(queue)
  sweep(s, now)
  local its, no = session_to_receive_from(s, now, argv[1], argv[2])
  lock_ms = lock_duration(s, lock_ms)
  no = no or (lock_ms > 0 and (locks_full(s) or (its and holds_too_many(s, its))))
  local seen = {}
  for i = 4, no and 0 or #argv do
    local sequence = whole(argv[i], 1, 2 ^ 48)
    if seen[sequence or 0] or not is_there(s, now, sequence, its) then
      no = refusal('NOTFOUND', 'message ' .. argv[i] .. ' is not deferred here')
      break
    end
    seen[sequence] = true
  end
  if no then
    save(s)
    return no
  end
  local until_ms = lock_ms > 0 and (its and its.until_ms or now + lock_ms) or 0
  local reply = { now, until_ms }
  for i = 4, #argv do
    local sequence = tonumber(argv[i])
    local segment, deliveries, id = segment_of(sequence), undefer(s, sequence), 0
    local bodies = bodies_of(s.queue, segment, sequence, sequence)
    local times = times_of(s, segment, sequence, sequence)
    if lock_ms > 0 then
      id = lock(s, sequence, sequence, deliveries + 1, #bodies[1], until_ms, its, true)
    else
      remove(s, segment, sequence, sequence, #bodies[1])
    end
    reply[#reply + 1] = { id, sequence, deliveries + 1, times, bodies }
  end
  save(s)
  return reply
end, FREES)
