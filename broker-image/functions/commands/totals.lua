-- pq_totals: how the partition stands.
-- KEYS   queue
-- REPLY  {name, value, ...}: messages (all that are stored), ready, locked, claimed; bytes stored; last (sequence number);
--        now (ms)
command('pq_totals', function(queue)
  local state = load_state(queue, 'tail', 'gone', 'locked', 'claimed', 'in', 'out')
  local messages = number(state, 'tail') - number(state, 'gone')
  local locked, claimed = number(state, 'locked'), number(state, 'claimed')
  return {
    'messages', messages, 'ready', messages - locked - claimed, 'locked', locked, 'claimed', claimed,
    'bytes', number(state, 'in') - number(state, 'out'), 'last', number(state, 'tail'), 'now', now_ms(),
  }
end, { 'no-writes' })
