-- pq_complete: takes messages that their receiver has finished with out of the queue.
-- KEYS   queue
-- ARGV   run, first, last, ... (up to 1000 triples): messages first..last under the lock `run`; each triple is settled
--        whole or refused whole
-- REPLY  {place of a refused triple, ...}: its lock has expired, is another's, or the messages were settled already
command('pq_complete', function(queue, argv)
  local bad = bad_triples(argv, 1)
  if bad then return bad end
  local now = now_ms()
  local state = load_state(queue, 'out', 'gone', 'locked', 'r' .. (argv[1] or ''))
  local refused = each_lock(state, now, argv, 1, function(run, first, last)
    local bytes = unlock(state, run, first, last)
    remove(state, segment_of(first), first, last, bytes)
  end)
  save(state)
  return refused
end, { 'allow-oom' })
