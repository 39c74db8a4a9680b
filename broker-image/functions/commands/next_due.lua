-- pq_next_due: when pq_sweep has something to do next, at the earliest.
-- KEYS   queue
-- REPLY  time in ms, -1: nothing waits for its time
command('pq_next_due', function(queue)
  local at = load_state(queue).due
  return at < NEVER and at or -1
end, READS)
