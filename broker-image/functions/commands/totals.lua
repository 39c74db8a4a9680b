-- pq_totals: how the partition stands.
-- KEYS   queue
-- REPLY  {name, value, ...}: messages (all that are stored), ready, locked, claimed; bytes stored; last (sequence number);
--        now (ms); partition, partitions (which one this is, of how many; of 0: nobody has said)
command('pq_totals', function(queue)
  local state = load_state(queue, 'partition', 'partitions', 'tail', 'gone', 'locked', 'claimed', 'in', 'out')
  local now = now_ms()
  local messages = number(state, 'tail') - number(state, 'gone')
  local locked, claimed = number(state, 'locked'), number(state, 'claimed')
  -- What has expired is ready, although nobody has swept it yet.
  local expired = call('ZRANGE', queue .. ':due', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, RUNS_SWEPT)
  for i = 1, #expired do
    local run = run_of(state, expired[i])
    if not run.renewed then locked = locked - held_count(run) end
  end
  local lapsed = call('ZRANGE', queue .. ':groups', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 16)
  for i = 1, #lapsed do
    local group = group_of(queue, lapsed[i])
    claimed = claimed - (group.next - group.base)
  end
  return {
    'messages', messages, 'ready', messages - locked - claimed, 'locked', locked, 'claimed', claimed,
    'bytes', number(state, 'in') - number(state, 'out'), 'last', number(state, 'tail'), 'now', now,
    'partition', number(state, 'partition'), 'partitions', number(state, 'partitions'),
  }
end, { 'no-writes' })
