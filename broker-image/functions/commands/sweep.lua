-- pq_sweep: does a bounded part of what has fallen due, in the queue and its sub-queues. Every call on a queue does so for that
-- queue; this is for when nobody calls.
-- KEYS   queue
-- REPLY  {next due, now}, in ms: not after now where some is left; -1: nothing waits for its time
local SUB_QUEUES = { '/$DeadLetterQueue', '/$Transfer', '/$Transfer/$DeadLetterQueue' }

command('pq_sweep', function(queue)
  local now = now_ms()
  local s = load_state(queue)
  sweep(s, now)
  tidy(s)
  save(s)
  local due = s.due
  for i = 1, #SUB_QUEUES do
    if call('EXISTS', queue .. SUB_QUEUES[i]) == 1 then
      local its = load_state(queue .. SUB_QUEUES[i])
      its.work = s.work
      sweep(its, now)
      tidy(its)
      save(its)
      s.work, due = its.work, min(due, its.due)
    end
  end
  return { due < NEVER and due or -1, now }
end, FREES)
