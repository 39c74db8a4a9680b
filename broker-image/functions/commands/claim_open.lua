-- pq_claim_open: makes the caller the owner of a group's claim log; whoever owned it before is fenced.
-- KEYS   queue
-- ARGV   group, owner, lease in ms
-- REPLY  {base, next, lost, sessions}: the log holds ordinals [base, next); those below `lost` were given back to the queue;
--        sessions is 1 where the queue has sessions
-- ERROR  TRYAGAIN  claims that were lost are still being given back: call again
command('pq_claim_open', function(queue, argv)
  local lease_ms = whole(argv[3], 1, 2 ^ 40)
  if not lease_ms or argv[1] == '' or argv[2] == '' then return refusal('BADCALL', 'pq_claim_open takes group, owner and lease') end
  local group = group_of(queue, argv[1])
  if group.lost > group.base then -- a giving back was under way: what is left of it is lost as well
    local s = load_state(queue)
    give_back_claims(s, group)
    save(s)
    if group.base < group.next then
      put_group(queue, group)
      return refusal('TRYAGAIN', 'claims of group ' .. argv[1] .. ' are being given back')
    end
  end
  group.owner, group.lease = argv[2], now_ms() + lease_ms
  put_group(queue, group)
  return { group.base, group.next, group.lost, config_of(call('HGET', queue, 'config')).sessions }
end, FREES)
