-- pq_claimed: where the messages of a range of a claim log are; the reader fetches them with LRANGE and GET.
-- KEYS   queue
-- ARGV   group, from, to (ordinals, to excluded)
-- REPLY  {base, next, lost, first, count, deliveries, first, count, deliveries, ...}
--        to <= lost: the whole range was given back after it had been planned: no triples. from < lost < to: the range was
--        planned after the loss, so its ordinals below `lost` never were anybody's: they are left out. Otherwise the counts
--        add up to to - from; less means that a part was acknowledged before.
command('pq_claimed', function(queue, argv)
  local from, to = whole(argv[2], 0, 2 ^ 52), whole(argv[3], 0, 2 ^ 52)
  if not from or not to then return refusal('BADCALL', 'pq_claimed takes group, from and to') end
  local group = group_of(queue, argv[1])
  local reply = { group.base, group.next, group.lost }
  if to <= group.lost then return reply end
  local ordinal, at = group.base, 0
  while ordinal < to do
    local entries = call('LRANGE', log_key(queue, argv[1]), at, at + 63)
    if #entries == 0 then break end
    for i = 1, #entries do
      local first, count, deliveries = unpack_struct(LOG_ENTRY, entries[i])
      local skip, stop = max(0, from - ordinal), min(count, to - ordinal)
      if stop > skip then
        local n = #reply
        reply[n + 1], reply[n + 2], reply[n + 3] = first + skip, stop - skip, deliveries
      end
      ordinal = ordinal + count
    end
    at = at + #entries
  end
  return reply
end, READS)
