-- pq_abandon: gives messages back to their old place in the queue, at once.
-- KEYS   queue
-- ARGV   'counted' (abandon: this delivery counts) or 'uncounted' (release: it does not), then run, first, last, ...
-- REPLY  {place of a refused triple, ...} as in pq_complete
command('pq_abandon', function(queue, argv)
  local how = argv[1]
  if how ~= 'counted' and how ~= 'uncounted' then return refusal('BADCALL', 'pq_abandon takes counted or uncounted') end
  local bad = bad_triples(argv, 2)
  if bad then return bad end
  local now = now_ms()
  local state = load_state(queue, 'run', 'locked')
  local refused = each_lock(state, now, argv, 2, function(run, first, last)
    local deliveries = run.deliveries
    unlock(state, run, first, last)
    give_back(state, first, last - first + 1, how == 'counted' and deliveries or deliveries - 1, '')
  end)
  save(state)
  return refused
end, { 'allow-oom' })
