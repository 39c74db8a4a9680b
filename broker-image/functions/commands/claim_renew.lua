-- pq_claim_renew: keeps a group's claims for longer.
-- KEYS   queue
-- ARGV   group, owner, lease in ms
-- REPLY  lease expiry in ms
-- ERROR  CLAIMFENCED  another owner has opened the group, or its claims were given back
command('pq_claim_renew', function(queue, argv)
  local lease_ms = whole(argv[3], 1, 2 ^ 40)
  if not lease_ms then return refusal('BADCALL', 'pq_claim_renew takes group, owner and lease') end
  local group = group_of(queue, argv[1])
  local no = fenced(group, argv[2])
  if no then return no end
  group.lease = now_ms() + lease_ms
  put_group(queue, group)
  return group.lease
end, FREES)
