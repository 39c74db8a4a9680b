-- pq_session_state: what a session's receivers keep with it.
-- KEYS   queue
-- ARGV   session, number of its lock, 'get', 'set' or 'clear', value (of set; up to 256 KB)
-- REPLY  get: the state, or nothing where none is set; set, clear: 1
-- ERROR  SESSIONLOCKLOST · NOSESSIONS · QUOTA
local STATE_BYTES_MOST = 262144

command('pq_session_state', function(queue, argv)
  local what, value = argv[3], argv[4] or ''
  local now = now_ms()
  local s = load_state(queue, 's' .. argv[1])
  local its, no = held_session(s, now, argv[1], argv[2])
  if not its then return no or refusal('BADCALL', 'pq_session_state takes a session') end
  if what == 'get' then return its.state_bytes > 0 and call('HGET', queue .. ':states', its.id) end
  local before, bytes = its.state_bytes, what == 'set' and #value + 1 or 0 -- an empty state is a state
  if (what ~= 'set' and what ~= 'clear') or bytes > STATE_BYTES_MOST + 1 then
    return refusal('BADCALL', 'pq_session_state takes get, clear, or set and up to ' .. STATE_BYTES_MOST .. ' bytes')
  end
  if bytes > before and s.config.quota_bytes > 0 and charge_of(s) + bytes - before > s.config.quota_bytes then
    return refusal('QUOTA', 'the partition is full: there is no room for the state of a session')
  end
  if what == 'set' then
    call('HSET', queue .. ':states', its.id, value)
  elseif before > 0 then
    call('HDEL', queue .. ':states', its.id)
  end
  its.state_bytes, s.state_bytes = bytes, s.state_bytes + bytes - before
  save(s)
  return 1
end, FREES)
