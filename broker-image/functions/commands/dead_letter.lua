-- pq_dead_letter: moves messages to the queue's dead-letter queue.
-- KEYS   queue
-- ARGV   session, session lock as in pq_complete, changes as in pq_abandon (they say the reason), then run, first, last, ...
-- REPLY  {place of a refused triple, ...} as in pq_complete
-- ERROR  SESSIONLOCKLOST · NOTFOUND  a dead-letter queue has none of its own
command('pq_dead_letter', function(queue, argv)
  local no = no_dead_letters(queue)
  if no then return no end
  local bad = bad_changes(argv[3])
  if bad then return bad end
  local now = now_ms()
  local s, its = begin_settling(queue, argv, now, 4)
  if not s then return its end
  local refused = each_lock(s, now, argv, 4, #argv, its, function(run, first, last)
    put_away(s, run, first, last, argv[3])
  end)
  tidy(s)
  save(s)
  return refused
end, FREES)
