-- pq_list_sessions: the sessions that have ready messages, a state, or a lock; those that may be accepted come first, the
-- one whose first message is the oldest before all.
-- KEYS   queue
-- ARGV   how many to skip, sessions at most (1..1000)
-- REPLY  {session, ...}
-- ERROR  NOSESSIONS
command('pq_list_sessions', function(queue, argv)
  local skip, most = whole(argv[1], 0, 2 ^ 48), whole(argv[2], 1, 1000)
  if not skip or not most then return refusal('BADCALL', 'pq_list_sessions takes how many to skip and 1..1000') end
  local s = load_state(queue)
  if not s.config.has_sessions then return refusal('NOSESSIONS', 'this queue has no sessions') end
  return call('ZRANGE', queue .. ':sessions', skip, skip + most - 1)
end, READS)
