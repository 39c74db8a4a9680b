-- pq_claim: moves ready messages into a group's claim log, behind what it holds already.
-- KEYS   queue
-- ARGV   group, owner, lease in ms, from (ordinal), messages at most, and bytes at most (0: no bound): the claim ends with the
--        message that reaches it
-- REPLY  {end, ready, bytes}: the log now reaches at least `end` (what had been claimed beyond `from` before counts first),
--        `ready` messages are left, and this call has claimed so many bytes. A call does a bounded part: call again while end
--        grows. Where ordinals from `from` on were given back, the count goes on behind them; `end` stays `from` as long as
--        there is nothing behind them. Of a queue with sessions whole sessions are claimed, one after the other: nobody else
--        may accept one until all that was claimed of it is acknowledged or given back.
-- ERROR  CLAIMFENCED  another owner has opened the group · CLAIMAHEAD  the log does not reach `from` · DISABLED
--        CLAIMLOST  the lease lapsed and the claims were given back; open the group again

-- How many of first..last (one segment) fit into `room` bytes, the one that reaches it counted, and their bytes.
local function fitting(s, first, last, room)
  local sizes, bytes = sizes_each(sizes_of(s.queue, segment_of(first), first, last)), 0
  for i = 1, last - first + 1 do
    bytes = bytes + sizes[i]
    if bytes >= room then return i, bytes end
  end
  return last - first + 1, bytes
end

-- Claims messages outside of sessions, at most `most` of them and about `room` bytes; returns the bytes.
local function claim_ready(s, now, group, most, room)
  local stop, bytes, parts = group.next + most, 0, 0
  while group.next < stop and parts < RUNS_A_CALL and bytes < room do
    local step = stop - group.next
    if room < NEVER then step = min(step, messages_in(s, room - bytes)) end
    local first, last, deliveries = take(s, now, step)
    if not first then break end
    if room < NEVER then
      local count, size = fitting(s, first, last, room - bytes)
      if first + count <= last then
        if last == s.head and deliveries == 0 then
          s.head = first + count - 1
        else
          return_run(s, first + count, last - first - count + 1, deliveries, '')
        end
      end
      last, bytes = first + count - 1, bytes + size
    end
    log_claim(s.queue, group, first, last - first + 1, deliveries)
    parts = parts + 1
  end
  return bytes
end

-- The same of a queue with sessions. A message of a session is never put back behind the next: each is taken by itself where
-- bytes are bounded.
local function claim_sessions(s, now, group, most, room)
  local stop, bytes, parts = group.next + most, 0, 0
  local next_session = sessions_to_claim_from(s, group)
  while group.next < stop and parts < RUNS_A_CALL and bytes < room and not s.more do
    local id = next_session()
    if not id then break end
    claim_session(s, now, group, id, stop - group.next, room < NEVER and 1 or SEGMENT, function(first, last)
      parts = parts + 1
      if room < NEVER then bytes = bytes + bytes_of(s.queue, segment_of(first), first, last) end
      return parts < RUNS_A_CALL and bytes < room
    end)
  end
  return bytes
end

command('pq_claim', function(queue, argv)
  local name, owner, lease_ms = argv[1], argv[2], whole(argv[3], 1, 2 ^ 40)
  local from, most, room = whole(argv[4], 0, 2 ^ 52), whole(argv[5], 0, 2 ^ 48), whole(argv[6] or 0, 0, 2 ^ 47)
  if not lease_ms or not from or not most or not room then
    return refusal('BADCALL', 'pq_claim takes group, owner, lease, from, most and bytes')
  end
  local now = now_ms()
  local group = group_of(queue, name)
  local no = fenced(group, owner)
  if no then return no end
  if from > group.next then
    return refusal('CLAIMAHEAD', 'group ' .. name .. ' has claimed up to ' .. text(group.next) .. ', not ' .. text(from))
  end
  local s = load_state(queue)
  sweep(s, now)
  s.work = 0 -- what is handed out has a share of its own: much that is due keeps nobody waiting
  give_back_lapsed(s, now, name)
  if not s.config.may_receive then
    save(s)
    return refusal('DISABLED', 'the queue is ' .. s.config.status .. ': it hands out no messages')
  end
  local before, start = group.next, max(from, group.base)
  local bytes = (s.config.has_sessions and claim_sessions or claim_ready)(s, now, group, start + most - before,
    room > 0 and room or NEVER)
  s.claimed = s.claimed + group.next - before
  group.lease = now + lease_ms
  put_group(queue, group)
  save(s)
  return { group.next > start and min(group.next, start + most) or from, ready(s), bytes }
end, FREES)
