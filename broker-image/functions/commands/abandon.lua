-- pq_abandon: gives messages back to their old place in the queue, at once. One that has been delivered as often as the queue
-- allows goes to the dead-letter queue instead (MaxDeliveryCountExceeded).
-- KEYS   queue
-- ARGV   session, session lock as in pq_complete, 'counted' (abandon: this delivery counts) or 'uncounted' (release: it does
--        not), changes ('' or an AMQP map of application properties that are changed), then run, first, last, ...
-- REPLY  {place of a refused triple, ...} as in pq_complete
-- ERROR  SESSIONLOCKLOST
command('pq_abandon', function(queue, argv)
  local counted = argv[3] == 'counted'
  if not counted and argv[3] ~= 'uncounted' then
    return refusal('BADCALL', 'pq_abandon takes counted or uncounted')
  end
  local bad = bad_changes(argv[4])
  if bad then return bad end
  local now = now_ms()
  local s, its = begin_settling(queue, argv, now, 5)
  if not s then return its end
  local refused = each_lock(s, now, argv, 5, #argv, its, function(run, first, last)
    abandon(s, run, first, last, its, counted, argv[4])
  end)
  save(s)
  return refused
end, FREES)
