-- Messages come in: ready at once, or scheduled, each to its session where the queue has sessions.

local TIMED = {} -- flags with a time to live or a schedule
for flags = 0, 255 do TIMED[flags] = flags % 32 >= 8 end

-- The one session of list[from..to], or nil and a refusal.
local function session_of_all(list, from, to)
  local id = session_id_of(list[from])
  if not id then
    return nil, refusal('SESSIONREQUIRED', 'this queue has sessions: every message needs a SessionId')
  end
  local length, at = unpack_struct('<I2xxxxxxI4', list[from], 5)
  local places = sub(list[from], 5, 16)
  for i = from + 1, to do
    local body = list[i]
    if (byte(body, 2) or 0) % 2 == 0 or (sub(body, 5, 16) ~= places or sub(body, at + 1, at + length) ~= id) and session_id_of(body) ~= id then
      return nil, refusal('SESSIONREQUIRED', 'a batch goes to one session: every message of it needs the same SessionId')
    end
  end
  return id
end

-- Stores list[from..to] behind the tail; `id` is their session where the queue has sessions. Returns the first number.
-- `at_once`: what was scheduled has come by now.
function store(s, now, list, from, to, id, at_once)
  local first, ttl_ms, timed = s.tail + 1, s.config.ttl_ms, false
  for i = from, s.root == s.queue and to or 0 do -- a sub-queue keeps both for where the message goes from there
    if TIMED[byte(list[i], 2) or 0] then
      timed = true
      break
    end
  end
  if not timed and ttl_ms == 0 then
    append(s, now, list, from, to)
    if id then add_to_session(session_of(s, id), s, first, to - from + 1) end
    return first
  end
  local expiries, times = {}, nil
  for i = from, to do
    local body = list[i]
    local flags = byte(body, 2) or 0
    local at = at_once and 0 or scheduled_time_of(body, flags, now)
    if at > 0 then
      times = times or {}
      times[i], expiries[i] = at, 0
    else
      expiries[i] = expiry_of(body, flags, now, ttl_ms)
    end
  end
  append(s, now, list, from, to, expiries)
  local start = from
  for i = from, to do
    local at = times and times[i]
    if at then
      if id and i > start then add_to_session(session_of(s, id), s, first + start - from, i - start) end
      start = i + 1
      schedule(s, first + i - from, at)
    end
  end
  if id and start <= to then add_to_session(session_of(s, id), s, first + start - from, to - start + 1) end
  return first
end

-- Whether `count` messages of `bytes` in all find room: nil, or a refusal. Sub-queues share their queue's quota.
function no_room(s, bytes, count)
  local root = s.root
  local of = root == s.queue and s or load_state(root)
  local quota = of.config.quota_bytes
  if quota == 0 or charge_of(of) + charge_for(bytes, count) <= quota then return nil end
  return refusal('QUOTA', 'the partition is full: ' .. text(of.bytes + of.sub_bytes) .. ' bytes of messages, of '
    .. text(quota) .. ' for these and what keeps them')
end

function not_sending(s)
  if s.config.may_send then return nil end
  return refusal('DISABLED', 'the queue is ' .. s.config.status .. ': it takes no messages')
end

-- Whether list[from..to] may be stored: nil, or a refusal. Their session comes second.
local function may_store(s, list, from, to)
  local id, bytes, no = nil, 0, not_sending(s)
  if s.config.has_sessions and not no then id, no = session_of_all(list, from, to) end
  for i = from, to do bytes = bytes + #list[i] end
  no = no or no_room(s, bytes, to - from + 1)
  return no, id
end

-- Leaves out duplicates: what is to be stored, and the places (from 0) of the others.
function without_duplicates(argv, from, to, duplicate)
  local rest, places = {}, {}
  for i = from, to do
    if duplicate[i - from + 1] then places[#places + 1] = i - from else rest[#rest + 1] = argv[i] end
  end
  return rest, places
end

-- Whether argv[from..to] may be taken in: nil, or a refusal. Their session comes second.
function may_take_in(s, argv, from, to, fingerprints)
  local no, id = may_store(s, argv, from, to)
  if no then return no end
  if (fingerprints ~= '' or s.config.dedupe_ms > 0) and #fingerprints ~= (to - from + 1) * FINGERPRINT then
    return refusal('BADCALL', 'this queue detects duplicates: 12 bytes of fingerprint for each message are needed')
  end
  return nil, id
end

-- Stores argv[from..to], which may be taken in, but for duplicates; returns the reply.
function take_in(s, now, argv, from, to, fingerprints, id)
  if s.config.dedupe_ms == 0 then return { store(s, now, argv, from, to, id), now } end
  local duplicate = duplicates_in(s, now, fingerprints)
  if not duplicate then return { store(s, now, argv, from, to, id), now } end
  local rest, places = without_duplicates(argv, from, to, duplicate)
  return { #rest > 0 and store(s, now, rest, 1, #rest, id) or 0, now, unpack(places) }
end
