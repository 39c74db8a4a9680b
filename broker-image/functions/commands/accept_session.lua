-- pq_accept_session: locks a session for one receiver: a named one, or the one whose first waiting message is the oldest.
-- KEYS   queue
-- ARGV   session, lock duration in ms (-1: the queue's; 1..300000), and 'next' where any session will do: then the first is ''
-- REPLY  {session, number of its lock, locked until in ms, now in ms}; {'', 0, ask again, now} where none is available
--        (ask again as in pq_receive; no lock has the number 0)
-- ERROR  SESSIONLOCKED  another receiver holds the named one · NOSESSIONS · DISABLED
command('pq_accept_session', function(queue, argv)
  local id, lock_ms = argv[1], whole(argv[2], -1, 300000)
  if not id or not lock_ms or lock_ms == 0 then
    return refusal('BADCALL', 'pq_accept_session takes a session and -1 or 1..300000 ms')
  end
  local now = now_ms()
  local s = load_state(queue)
  if not s.config.has_sessions then return refusal('NOSESSIONS', 'this queue has no sessions') end
  if not s.config.may_receive then
    return refusal('DISABLED', 'the queue is ' .. s.config.status .. ': it hands out no messages')
  end
  sweep(s, now)
  s.work = 0
  give_back_lapsed(s, now)
  if s.its_sessions then finish_sessions(s) end -- some may have become available just now
  local named = argv[3] ~= 'next'
  if not named then
    local first = call('ZRANGE', queue .. ':sessions', 0, 0, 'WITHSCORES')
    if not first[1] or tonumber(first[2]) >= BUSY then
      save(s)
      return { '', 0, ask_again(s, now), now }
    end
    id = first[1]
  end
  local its = session_of(s, id)
  s.work = 0
  if its.lock > 0 and its.until_ms <= now or its.lock == 0 and its.held_size > 0 then leave_lock(s, its, true) end
  if its.lock > 0 or its.held_size > 0 then
    save(s)
    if not named then return { '', 0, now, now } end
    return refusal('SESSIONLOCKED', "session '" .. id .. "' is locked by another receiver")
  end
  s.run = s.run + 1 -- a number of its own, never used again: it fences
  its.lock, its.until_ms = s.run, now + lock_duration(s, lock_ms)
  s.sessions_locked = s.sessions_locked + 1
  add_due(s, 'l' .. id, its.until_ms)
  save(s)
  return { id, its.lock, its.until_ms, now }
end, FREES)
