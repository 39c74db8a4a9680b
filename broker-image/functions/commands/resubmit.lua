-- pq_resubmit: moves ready messages of a dead-letter queue back to the queue they came from, a bounded part a call. Each gets
-- a new number and no deliveries, and its reason for being dead goes (the changes say null).
-- KEYS   dead-letter queue
-- ARGV   messages at most (1..1000), up to which sequence number (0: the last one of now), then sequence numbers (none: all,
--        in order)
-- REPLY  {moved, up to, more}: call again with `up to` until more is 0
-- ERROR  NOTFOUND  a number given is not ready there, or this is no dead-letter queue; nothing was moved
--        DISABLED · SESSIONREQUIRED  a message without SessionId, of a queue with sessions
local REVIVED

command('pq_resubmit', function(queue, argv)
  local most, upto = whole(argv[1], 1, 1000), whole(argv[2], 0, 2 ^ 48)
  if not most or not upto or #argv > 1002 then
    return refusal('BADCALL', 'pq_resubmit takes 1..1000 messages, a sequence number, and up to 1000 more')
  end
  local suffix = '/$DeadLetterQueue'
  if sub(queue, -#suffix) ~= suffix then return refusal('NOTFOUND', 'this is no dead-letter queue') end
  REVIVED = REVIVED or amqp_map('DeadLetterReason', false, 'DeadLetterErrorDescription', false)
  local now = now_ms()
  local s = load_state(sub(queue, 1, -#suffix - 1))
  local dead = sub_queue(s, suffix)
  sweep(dead, now)
  dead.work = 0
  if upto == 0 then upto = dead.tail end
  local moved_count = 0
  local function come_back(first, last)
    local segment = segment_of(first)
    local bodies, bytes = bodies_of(queue, segment, first, last), 0
    for i = 1, #bodies do
      local id = session_id_of(bodies[i])
      bytes = bytes + #bodies[i]
      bodies[i] = revived(bodies[i], REVIVED)
      if s.config.has_sessions then store(s, now, bodies, i, i, id or '', true) end
    end
    if not s.config.has_sessions then store(s, now, bodies, 1, #bodies, nil, true) end
    remove(dead, segment, first, last, bytes)
    dead.work = dead.work + #bodies + bytes / WORK_BYTES
    moved_count = moved_count + #bodies
  end
  local more = 0
  if #argv > 2 then
    local wanted, seen = {}, {}
    for i = 3, #argv do
      local sequence = whole(argv[i], 1, 2 ^ 48)
      if not sequence or seen[sequence] or not is_ready(dead, sequence) then
        save(s)
        return refusal('NOTFOUND', 'message ' .. argv[i] .. ' is not ready in this dead-letter queue')
      end
      wanted[i - 2], seen[sequence] = sequence, true
    end
    for i = 1, #wanted do
      dead.work = 0
      withdraw(dead, segment_of(wanted[i]), wanted[i], wanted[i], come_back)
    end
  else
    while moved_count < most and dead.work < WORK_A_CALL do
      local first, last = next_ready(dead)
      if not first or first > upto then break end
      first, last = take(dead, now, min(most - moved_count, min(last, upto) - first + 1, messages_in(dead, 1048576)))
      if not first then break end
      come_back(first, last)
    end
    local first = next_ready(dead)
    if first and first <= upto then more = 1 end
  end
  tidy(dead)
  save(s)
  return { moved_count, upto, more }
end, FREES)
