-- pq_claim: moves ready messages into a group's claim log, behind what it holds already.
-- KEYS   queue
-- ARGV   group, owner, lease in ms, from (ordinal), messages at most
-- REPLY  {end, ready}: the log now reaches at least `end` (what had been claimed beyond `from` before counts first), and
--        `ready` messages are left. A call does a bounded part: call again while end grows. Where ordinals from `from` on
--        were given back, the count goes on behind them; `end` stays `from` as long as there is nothing behind them.
-- ERROR  CLAIMFENCED  another owner has opened the group · CLAIMAHEAD  the log does not reach `from`
--        DISABLED · SESSIONREQUIRED  a queue with sessions is received from by session
--        CLAIMLOST  the lease lapsed and the claims were given back; open the group again
command('pq_claim', function(queue, argv)
  local name, owner, lease_ms = argv[1], argv[2], whole(argv[3], 1, 2 ^ 40)
  local from, most = whole(argv[4], 0, 2 ^ 52), whole(argv[5], 0, 2 ^ 48)
  if not lease_ms or not from or not most then
    return refusal('BADCALL', 'pq_claim takes group, owner, lease, from and most')
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
  local _, refused = session_to_receive_from(s, now, '', '0')
  if refused then
    save(s)
    return refused
  end
  local before, parts, start = group.next, 0, max(from, group.base)
  while group.next < start + most and parts < RUNS_A_CALL do
    local first, last, deliveries = take(s, now, start + most - group.next)
    if not first then break end
    log_claim(queue, group, first, last - first + 1, deliveries)
    parts = parts + 1
  end
  s.claimed = s.claimed + group.next - before
  group.lease = now + lease_ms
  put_group(queue, group)
  save(s)
  return { group.next > start and min(group.next, start + most) or from, ready(s) }
end, FREES)
