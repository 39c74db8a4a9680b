-- pq_renew_lock: keeps messages locked for longer; the lock tokens stay what they are.
-- KEYS   queue
-- ARGV   lock duration in ms (-1: the queue's; 1..300000), then run, first, last, ...
-- REPLY  {locked until in ms, place of a refused triple, ...} as in pq_complete; what is held in a session is refused, its
--        session is renewed as a whole (pq_renew_session)
command('pq_renew_lock', function(queue, argv)
  local lock_ms = whole(argv[1], -1, 300000)
  if not lock_ms or lock_ms == 0 then return refusal('BADCALL', 'pq_renew_lock takes -1 or 1..300000 ms') end
  local bad = bad_triples(argv, 2, #argv)
  if bad then return bad end
  local now = now_ms()
  local s = load_state(queue, 'r' .. (argv[2] or ''))
  local until_ms = now + lock_duration(s, lock_ms)
  local refused = each_lock(s, now, argv, 2, #argv, nil, function(run, first, last) renew(s, run, first, last, until_ms) end)
  save(s)
  return { until_ms, unpack(refused) }
end, FREES)
