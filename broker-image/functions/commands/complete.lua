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
  local refused, at_once = {}, #argv == 5
  for i = 3, #argv, 3 do
    local id, first, last = argv[i], argv[i + 1], argv[i + 2]
    local done = complete_plain(s, now, id, first, last, its, at_once)
    if done == 'written' then return EMPTY end
    if not done then
      local run = locked_run(s, now, id, first, last, its)
      if run then complete(s, run, first, last) else refused[#refused + 1] = (i - 3) / 3 end
    end
  end
  tidy(s)
  save(s)
  return refused
end, FREES)
