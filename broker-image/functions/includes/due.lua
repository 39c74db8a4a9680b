-- Due work, done at the head of a call, at most WORK_A_CALL pieces of it.

-- Scheduled messages of a segment whose time has come are appended anew, in the order of their times.
local function come_due(s, now, segment)
  local base = segment * SEGMENT + 1
  local entries = call('GET', scheduled_key(s.queue, segment)) or ''
  local bits = scheduled_bits(s, segment)
  local due, next_at = {}, NEVER
  for at = 1, #entries, 8 do
    local index, time = unpack_struct('<I2I6', entries, at)
    if bit_is_set(bits, index) then
      if time <= now then due[#due + 1] = { time, index } else next_at = min(next_at, time) end
    end
  end
  table.sort(due, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  for i = 1, #due do
    if s.work >= WORK_A_CALL then return end
    local sequence = base + due[i][2]
    local body = bodies_of(s.queue, segment, sequence, sequence)
    unschedule(s, sequence)
    store(s, now, body, 1, 1, s.config.has_sessions and session_id_of(body[1]) or nil, true)
    remove(s, segment, sequence, sequence, #body[1])
    s.work = s.work + 3 + #body[1] / WORK_BYTES
  end
  if next_at < NEVER then add_due(s, 's' .. segment, next_at) else not_due(s, 's' .. segment) end
end

-- Ready messages of a segment that have expired leave. Those that are held, deferred or claimed come back here when they are
-- given back; Azure's rule too: what is locked or deferred does not expire meanwhile.
local function expire_segment(s, now, segment)
  local base, next_at, cut = segment * SEGMENT + 1, NEVER, false
  local marks = call('GET', names_of(s.queue, segment).expiry) or ''
  each_mark(marks, segment, base, base + SEGMENT - 1, function(first, last, at)
    if at == 0 then return end
    if at > now then
      if last > s.head or s.config.has_sessions or s.returned > 0 then next_at = min(next_at, at) end
      return
    end
    cut = cut or withdraw(s, segment, first, last, function(from, to, deliveries) expire(s, from, to, deliveries) end)
  end)
  if cut then return end
  if next_at < NEVER then add_due(s, 'x' .. segment, next_at) else not_due(s, 'x' .. segment) end
end

-- What a session's receiver held goes back; the session may be accepted again when all of it has. False: not all yet.
function leave_lock(s, its, counted)
  if its.lock > 0 then
    its.lock, its.until_ms = 0, 0
    s.sessions_locked = s.sessions_locked - 1
  end
  local held, at = held_runs(s, its), 1
  while at <= #held and s.work < WORK_A_CALL do
    local run = run_of(s, (unpack_struct('<I6', held, at)))
    at = at + 6
    if run then
      each_stretch(run, function(first, last)
        s.locked = s.locked - (last - first + 1)
        local deliveries = counted and run.deliveries or run.deliveries - 1
        give_back(s, first, last, deliveries, run.was_deferred, its, counted)
      end)
      drop_run(s, run)
    end
    s.work = s.work + 0.25
  end
  if at > 1 then put_held_runs(s, its, sub(held, at)) end
  if its.held_size > 0 then return false end
  not_due(s, 'l' .. its.id)
  return true
end

local function do_due(s, now, member)
  local kind, rest = sub(member, 1, 1), sub(member, 2)
  if kind == 'x' then
    expire_segment(s, now, tonumber(rest))
  elseif kind == 's' then
    come_due(s, now, tonumber(rest))
  elseif kind == 'l' then
    leave_lock(s, session_of(s, rest), true)
  elseif kind == 'n' then
    forget_sender(s, now, rest)
  elseif kind == 'i' then
    generation_is_over(s, now)
  else
    local run = run_of(s, tonumber(member))
    if run then expire_lock(s, run, now) else not_due(s, member) end
  end
  s.work = s.work + 1
end

-- Does what has fallen due, a bounded part of it. Afterwards `due` is when to look again: not after `now` if some is left.
function sweep(s, now)
  if now < s.due then return end
  local next_at = walk(s, now)
  local members = call('ZRANGE', s.queue .. ':due', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, WORK_A_CALL)
  for i = 1, #members do
    if s.work >= WORK_A_CALL then break end
    do_due(s, now, members[i])
  end
  local lowest = call('ZRANGE', s.queue .. ':due', 0, 0, 'WITHSCORES')
  if lowest[2] then next_at = min(next_at, tonumber(lowest[2])) end
  s.due, s.was_due = next_at, next_at
end

-- From when on it is worth asking again: `now` where this call was cut short, -1 where nothing waits for its time.
function ask_again(s, now)
  if s.more or s.due <= now then return now end
  local at = s.due
  if s.claimed > 0 then
    local lease = call('ZRANGE', s.queue .. ':groups', 0, 0, 'WITHSCORES')
    if lease[2] then at = max(now, min(at, tonumber(lease[2]))) end
  end
  return at < NEVER and at or -1
end
