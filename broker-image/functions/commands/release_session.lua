-- pq_release_session: ends a receiver's hold on a session; what it had not settled goes back, and this does not count as a
-- delivery.
-- KEYS   queue
-- ARGV   session, number of its lock
-- REPLY  1
-- ERROR  SESSIONLOCKLOST · NOSESSIONS
command('pq_release_session', function(queue, argv)
  local now = now_ms()
  local s = load_state(queue, 's' .. argv[1])
  local its, no = held_session(s, now, argv[1], argv[2])
  if not its then return no or refusal('BADCALL', 'pq_release_session takes a session') end
  s.work = -NEVER -- all of it: what a session can hold is bounded
  leave_lock(s, its, false)
  save(s)
  return 1
end, FREES)
