-- Sessions. Bodies stay where they are; a session knows its ready messages as entries of 10 bytes, u48 first, u16 count,
-- u16 deliveries: those at its front, then chunks of them in the list `<queue>:more:<session>`, then those at its back.
-- The record `s<session>`: its lock (0: none), until when, the highest number it has handed out, ready messages, holes (gone
-- from among the entries), chunks, bytes of its state, bytes of the runs held and of the front; then the front, the back.
-- `<queue>:held:<session>`: the runs under its lock, 6 bytes each; settled ones are pruned now and then.
-- `<queue>:sessions`: every session, by its first ready message where it may be accepted, else by BUSY.
-- `<queue>:states`: session → its state.

local SESSION = '<I6I6I6I6I4I4I4I4I4'
local SESSION_SIZE = 44
ENTRY = '<I6I2I2'
local ENTRY_SIZE = 10
local CHUNK_BYTES = 16 * ENTRY_SIZE
BUSY = 2 ^ 52
local HELD_PRUNED = 16 * 6 -- bytes of held runs from which settled ones are looked for, once in half as many receives
local HELD_MOST = 2048 * 6 -- a session that really holds so many runs gets no more

local function session_score(lock, held_size, count, front, back)
  if lock == 0 and held_size == 0 and count > 0 then return (unpack_struct('<I6', front ~= '' and front or back)) end
  return BUSY
end

-- A session's lists are looked at when one of them is asked for: whoever settles needs its lock only.
local LISTS = { __index = function(its, name)
  if rawget(its, 'front') then return nil end
  local record, at = its.record, SESSION_SIZE + its.front_size
  its.front, its.back, its.back_again, its.runs_held = sub(record, SESSION_SIZE + 1, at), sub(record, at + 1), false, false
  local lock, _, _, count, _, _, _, held_size = unpack_struct(SESSION, record) -- as they were
  its.was_ready, its.score = count > 0, session_score(lock, held_size, count, its.front, its.back)
  return rawget(its, name)
end }

function session_of(s, id)
  s.its_sessions = s.its_sessions or {}
  local its = s.its_sessions[id]
  if its then return its end
  local record = get(s, 's' .. id)
  its = s.known[id]
  if record and its and its.record == record then -- as the last command that asked for it has left it
    its.runs_held = false
  elseif record then
    local lock, until_ms, taken, count, holes, chunks, state_bytes, held_size, front_size = unpack_struct(SESSION, record)
    its = setmetatable({
      id = id, lock = lock, until_ms = until_ms, taken = taken, count = count, holes = holes, chunks = chunks,
      state_bytes = state_bytes, held_size = held_size, front_size = front_size, record = record,
    }, LISTS)
  else
    its = { id = id, lock = 0, until_ms = 0, taken = 0, count = 0, holes = 0, chunks = 0, state_bytes = 0, held_size = 0,
      front = '', back = '', record = false, was_ready = false, back_again = false, score = false, runs_held = false }
  end
  s.its_sessions[id], s.known[id] = its, its
  return its
end

local function more_key(s, its)
  return s.queue .. ':more:' .. its.id
end

-- The numbers of the runs under its lock, 6 bytes each; of settled ones, too, until they are pruned.
function held_runs(s, its)
  return its.held_size > 0 and call('GET', s.queue .. ':held:' .. its.id) or ''
end

function put_held_runs(s, its, held)
  local key = s.queue .. ':held:' .. its.id
  if held ~= '' then call('SET', key, held) elseif its.held_size > 0 then call('UNLINK', key) end
  its.held_size = #held
end

-- Adds messages that came just now, behind all others.
function add_to_session(its, s, first, count)
  its.count = its.count + count
  if its.back ~= '' then
    local before, length, deliveries = unpack_struct(ENTRY, its.back, #its.back - ENTRY_SIZE + 1)
    if before + length == first and deliveries == 0 and length + count < 65536 then
      its.back = sub(its.back, 1, -ENTRY_SIZE - 1) .. pack(ENTRY, before, length + count, 0)
      return
    end
    if #its.back >= CHUNK_BYTES then
      if its.front == '' and its.chunks == 0 then
        its.front = its.back
      else
        call('RPUSH', more_key(s, its), its.back)
        its.chunks = its.chunks + 1
      end
      its.back = ''
    end
  end
  while count > 0 do
    local part = min(count, 65535)
    its.back = its.back .. pack(ENTRY, first, part, 0)
    first, count = first + part, count - part
  end
end

-- Gives messages back to their session, each at its old place.
function add_back(its, first, last, deliveries)
  its.back_again = its.back_again or {}
  its.back_again[#its.back_again + 1] = { first, last - first + 1, min(deliveries, 65535) }
  its.count = its.count + last - first + 1
end

-- Sorts what was given back into the front.
local function merge_back(its)
  local entries = its.back_again
  if not entries then return end
  its.back_again = false
  for at = 1, #its.front, ENTRY_SIZE do entries[#entries + 1] = { unpack_struct(ENTRY, its.front, at) } end
  table.sort(entries, function(a, b) return a[1] < b[1] end)
  local parts, last = {}, nil
  for i = 1, #entries do
    local e = entries[i]
    if last and last[1] + last[2] == e[1] and last[3] == e[3] and last[2] + e[2] < 65536 then
      last[2] = last[2] + e[2]
    else
      parts[#parts + 1], last = e, e
    end
  end
  for i = 1, #parts do parts[i] = pack(ENTRY, parts[i][1], parts[i][2], parts[i][3]) end
  its.front = table.concat(parts)
end

-- Makes the first entry the first of `front`; false where there is none.
function has_front(its, s)
  merge_back(its)
  if its.front ~= '' then return true end
  if its.chunks > 0 then
    its.front = call('LPOP', more_key(s, its))
    its.chunks = its.chunks - 1
  else
    its.front, its.back = its.back, ''
  end
  return its.front ~= ''
end

-- Takes `count` messages off the first entry.
function take_front(its, count)
  local first, length, deliveries = unpack_struct(ENTRY, its.front)
  if count == length then
    its.front = sub(its.front, ENTRY_SIZE + 1)
  else
    its.front = pack(ENTRY, first + count, length - count, deliveries) .. sub(its.front, ENTRY_SIZE + 1)
  end
end

-- Whether a receiver holds a message in this session.
local function is_held_in(s, its, sequence)
  if not its.runs_held then
    local runs, held = {}, held_runs(s, its)
    for at = 1, #held, 6 do runs[#runs + 1] = run_of(s, (unpack_struct('<I6', held, at))) or nil end
    its.runs_held = runs
  end
  for i = 1, #its.runs_held do
    local run = its.runs_held[i]
    if sequence >= run.first and sequence < run.first + run.count and holds(run, sequence - run.first) then return true end
  end
  return false
end

-- The deliveries of a message that is stored, not deferred, and belongs to this session; nil where it is not ready. What was
-- deferred once may be held although it is beyond `taken`, which is forgotten with the session's record.
function deliveries_in(s, its, sequence)
  if sequence > its.taken then
    return (its.held_size == 0 or not is_held_in(s, its, sequence)) and 0 or nil
  end
  merge_back(its)
  for at = 1, #its.front, ENTRY_SIZE do
    local first, count, deliveries = unpack_struct(ENTRY, its.front, at)
    if sequence >= first and sequence < first + count then return deliveries end
  end
end

-- A ready message leaves its session, out of turn.
function leave_session(its)
  its.count, its.holes = its.count - 1, its.holes + 1
end

-- Lets go of what has gone from the front, so that the first entry says which message is the first.
local HOLES_PASSED = 1024 -- in one call
local function trim_front(s, its)
  local passed = 0
  while its.holes > 0 and passed < HOLES_PASSED and its.count > 0 and has_front(its, s) do
    local first, length = unpack_struct(ENTRY, its.front)
    local gone, index, n = absent_from(s, segment_of(first)), (first - 1) % SEGMENT, 0
    while n < length and index + n < SEGMENT and bit_is_set(gone, index + n) do n = n + 1 end
    if n == 0 then return end
    take_front(its, n)
    its.holes, passed = its.holes - n, passed + n
  end
end

local function finish_session(s, its)
  if not rawget(its, 'front') and sub(its.record, 1, SESSION_SIZE) == pack(SESSION, its.lock, its.until_ms, its.taken,
    its.count, its.holes, its.chunks, its.state_bytes, its.held_size, its.front_size)
  then
    return -- nothing has changed
  end
  merge_back(its)
  if its.holes > 0 then trim_front(s, its) end
  if its.count == 0 and (its.front ~= '' or its.back ~= '' or its.chunks > 0) then
    if its.chunks > 0 then call('UNLINK', more_key(s, its)) end
    its.front, its.back, its.chunks, its.holes = '', '', 0, 0
  end
  if its.chunks > 0 and its.front == '' and its.lock == 0 then has_front(its, s) end -- where it stands is known by its front
  if its.count == 0 and its.lock == 0 and its.held_size == 0 and its.state_bytes == 0 then
    if its.record then
      drop(s, 's' .. its.id)
      s.sessions = s.sessions - 1
      call('ZREM', s.queue .. ':sessions', its.id)
      its.record, its.score, its.was_ready = false, false, false
    end
    return
  end
  local record = pack(SESSION, its.lock, its.until_ms, its.taken, its.count, its.holes, its.chunks, its.state_bytes,
    its.held_size, #its.front) .. its.front .. its.back
  if record == its.record then return end
  put(s, 's' .. its.id, record)
  local score = session_score(its.lock, its.held_size, its.count, its.front, its.back)
  if not its.record then s.sessions = s.sessions + 1 end
  if score ~= its.score then call('ZADD', s.queue .. ':sessions', text(score), its.id) end
  if (score < BUSY and (its.score or BUSY) == BUSY) or (its.lock > 0 and its.count > 0 and not its.was_ready) then
    call('PUBLISH', s.queue .. ':wake', its.id)
  end
  its.record, its.score, its.was_ready = record, score, its.count > 0
end

function finish_sessions(s)
  for _, its in pairs(s.its_sessions) do finish_session(s, its) end
end

-- Whether `session, session lock` in ARGV say that the caller is in no session: '' and 0. A session's id may be empty, the
-- number of a lock is never 0.
function in_no_session(id, lock)
  return id == '' and (lock or '0') == '0'
end

-- The session that a receiver holds, from `session, session lock` in ARGV: nil outside of one; or false and a refusal.
function held_session(s, now, id, lock)
  if in_no_session(id, lock) then return nil end
  if not s.config.has_sessions then
    return false, refusal('NOSESSIONS', 'this queue has no sessions')
  end
  local its = session_of(s, id)
  if its.lock == 0 or its.lock ~= tonumber(lock) or its.until_ms <= now then
    return false, refusal('SESSIONLOCKLOST', "the lock of session '" .. id .. "' has expired or is another receiver's")
  end
  return its
end

-- Drops what is settled by now from the runs that a session holds.
local function prune(s, its)
  local held, names, alive = held_runs(s, its), {}, {}
  for at = 1, #held, 6 do names[#names + 1] = 'r' .. unpack_struct('<I6', held, at) end
  local records = call('HMGET', s.queue, unpack(names))
  for i = 1, #names do
    local value = s.value[names[i]]
    if value == nil then value = records[i] end
    if value then alive[#alive + 1] = sub(held, i * 6 - 5, i * 6) end
  end
  put_held_runs(s, its, table.concat(alive))
end

function hold_in_session(s, its, id)
  if its.held_size >= HELD_PRUNED and id % floor(its.held_size / 12) == 0 then prune(s, its) end
  its.held_size = call('APPEND', s.queue .. ':held:' .. its.id, pack('<I6', id))
end

-- Whether a session really holds as many runs as it may.
function holds_too_many(s, its)
  if its.held_size < HELD_MOST then return nil end
  prune(s, its)
  if its.held_size < HELD_MOST then return nil end
  return refusal('LOCKSFULL', "session '" .. its.id .. "' holds " .. HELD_MOST / 6 .. ' receives that are not settled: settle some first')
end

-- The session that a receive is for, nil where the queue has none; or false and a refusal.
function session_to_receive_from(s, now, id, number)
  if not s.config.may_receive then
    return false, refusal('DISABLED', 'the queue is ' .. s.config.status .. ': it hands out no messages')
  end
  if in_no_session(id, number) and s.config.has_sessions then
    return false, refusal('SESSIONREQUIRED', 'this queue has sessions: accept one and receive from it')
  end
  return held_session(s, now, id, number)
end
