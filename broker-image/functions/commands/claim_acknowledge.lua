-- pq_claim_acknowledge: takes claimed messages below a position out of the queue for good.
-- KEYS   queue
-- ARGV   group, owner, up to (ordinal)
-- REPLY  how many ordinals below `up to` are still in the log: call again until it is 0
-- ERROR  CLAIMAHEAD  `up to` is beyond what was claimed
--        CLAIMFENCED · CLAIMLOST  the lease lapsed and the claims were given back; after it was opened again, ordinals
--        below `lost` count as acknowledged: pq_claim_open has told of them
command('pq_claim_acknowledge', function(queue, argv)
  local name, upto = argv[1], whole(argv[3], 0, 2 ^ 52)
  if not upto then return refusal('BADCALL', 'pq_claim_acknowledge takes group, owner and a position') end
  local group = group_of(queue, name)
  local no = fenced(group, argv[2])
  if no then return no end
  if upto <= group.base then return 0 end
  if upto > group.next then
    return refusal('CLAIMAHEAD', 'group ' .. name .. ' has claimed up to ' .. text(group.next) .. ', not ' .. text(upto))
  end
  local s = load_state(queue)
  local taken = pop_entries(queue, group, upto - group.base, function(first, last)
    local segment = segment_of(first)
    remove(s, segment, first, last, bytes_of(s.queue, segment, first, last))
  end)
  s.claimed = s.claimed - taken
  let_sessions_go(s, group)
  put_group(queue, group)
  tidy(s)
  save(s)
  return upto - group.base
end, FREES)
