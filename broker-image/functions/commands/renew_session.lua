-- pq_renew_session: keeps a session, and all that is held in it, locked for longer.
-- KEYS   queue
-- ARGV   session, number of its lock, lock duration in ms (-1: the queue's; 1..300000)
-- REPLY  locked until in ms
-- ERROR  SESSIONLOCKLOST · NOSESSIONS
command('pq_renew_session', function(queue, argv)
  local lock_ms = whole(argv[3], -1, 300000)
  if not lock_ms or lock_ms == 0 then return refusal('BADCALL', 'pq_renew_session takes -1 or 1..300000 ms') end
  local now = now_ms()
  local s = load_state(queue, 's' .. argv[1])
  local its, no = held_session(s, now, argv[1], argv[2])
  if not its then return no or refusal('BADCALL', 'pq_renew_session takes a session') end
  its.until_ms = now + lock_duration(s, lock_ms)
  add_due(s, 'l' .. its.id, its.until_ms)
  save(s)
  return its.until_ms
end, FREES)
