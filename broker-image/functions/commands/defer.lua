-- pq_defer: puts messages aside; they come back by their sequence numbers only (pq_receive_deferred).
-- KEYS   queue
-- ARGV   session, session lock as in pq_complete, changes as in pq_abandon, then run, first, last, ...
-- REPLY  {place of a refused triple, ...} as in pq_complete
-- ERROR  SESSIONLOCKLOST
command('pq_defer', function(queue, argv)
  local bad = bad_changes(argv[3])
  if bad then return bad end
  local now = now_ms()
  local s, its = begin_settling(queue, argv, now, 4)
  if not s then return its end
  local refused = each_lock(s, now, argv, 4, #argv, its, function(run, first, last)
    put_aside(s, run, first, last, argv[3])
  end)
  save(s)
  return refused
end, FREES)
