-- pq_complete: takes messages that their receiver has finished with out of the queue.
-- KEYS   queue
-- ARGV   session and the number of its lock ('' and 0 outside of a session), then run, first, last, ... (up to 1000 triples):
--        messages first..last under the lock `run`; each triple is settled whole or refused whole
-- REPLY  {place of a refused triple, ...}: its lock has expired, is another's, or the messages were settled already
-- ERROR  SESSIONLOCKLOST
command('pq_complete', function(queue, argv)
  local now = now_ms()
  local s, its = begin_settling(queue, argv, now, 3)
  if not s then return its end
  local refused = each_lock(s, now, argv, 3, #argv, its, function(run, first, last) complete(s, run, first, last) end)
  tidy(s)
  save(s)
  return refused
end, FREES)
