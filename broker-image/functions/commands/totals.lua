-- pq_totals: how the partition stands, after doing a bounded part of what has fallen due.
-- KEYS   queue
-- REPLY  {name, value, ...}: messages (all that are stored), of these ready, locked, claimed, deferred, scheduled; bytes stored,
--        sub-queues included; last (sequence number); now (ms); partition, partitions (which one this is, of how many; of 0:
--        nobody has said); dead_letters, transfers, transfer_dead_letters (messages in the sub-queues); oldest (when the first
--        message stored was enqueued, ms; 0: none); sessions (that may be accepted), sessions_locked; remembered (message ids);
--        charge and quota (bytes; sends are refused when the charge would be over the quota)

local function oldest_of(s)
  local first = call('ZRANGE', s.queue .. ':segments', 0, 0)
  local segment = tonumber(first[1] or 0)
  if s.messages == 0 then return 0 end
  local _, _, _, gone = gone_of(s, segment)
  local sequence = segment * SEGMENT + 1
  while bit_is_set(gone, (sequence - 1) % SEGMENT) do sequence = sequence + 1 end
  local _, at = unpack_struct('<I2I6', times_of(s, segment, sequence, sequence))
  return at
end

command('pq_totals', function(queue)
  local s = load_state(queue)
  local now = now_ms()
  sweep(s, now)
  local claimed = s.claimed
  if claimed > 0 then -- what has lapsed is ready, although nobody has asked for it yet
    local lapsed = call('ZRANGE', queue .. ':groups', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 16)
    for i = 1, #lapsed do
      local group = group_of(queue, lapsed[i])
      claimed = claimed - (group.next - group.base)
    end
  end
  save(s)
  local has_sessions = s.config.has_sessions
  return {
    'messages', s.messages, 'ready', ready(s) + s.claimed - claimed, 'locked', s.locked, 'claimed', claimed,
    'deferred', s.deferred, 'scheduled', s.scheduled, 'bytes', s.bytes + s.sub_bytes, 'last', s.tail, 'now', now,
    'partition', s.config.partition, 'partitions', s.config.partitions,
    'dead_letters', load_state(queue .. '/$DeadLetterQueue').messages, 'transfers', load_state(queue .. '/$Transfer').messages,
    'transfer_dead_letters', load_state(queue .. '/$Transfer/$DeadLetterQueue').messages, 'oldest', oldest_of(s),
    'sessions', has_sessions and call('ZCOUNT', queue .. ':sessions', '-inf', '(' .. text(BUSY)) or 0,
    'sessions_locked', s.sessions_locked, 'remembered', s.ids_count + s.ids_before_count,
    'charge', charge_of(s), 'quota', s.config.quota_bytes,
  }
end, FREES)
