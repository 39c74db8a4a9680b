-- pq_renew_lock: keeps messages locked for longer; the lock tokens stay what they are.
-- KEYS   queue
-- ARGV   lock duration in ms (1..300000), then run, first, last, ...
-- REPLY  {locked until in ms, place of a refused triple, ...} as in pq_complete
command('pq_renew_lock', function(queue, argv)
  local lock_ms = whole(argv[1], 1, 300000)
  if not lock_ms then return refusal('BADCALL', 'pq_renew_lock takes 1..300000 ms') end
  local bad = bad_triples(argv, 2)
  if bad then return bad end
  local now = now_ms()
  local state = load_state(queue, 'locked')
  local refused = each_lock(state, now, argv, 2, function(run, first, last)
    renew(state, run, first, last, now + lock_ms)
  end)
  save(state)
  return { now + lock_ms, unpack(refused) }
end, { 'allow-oom' })
