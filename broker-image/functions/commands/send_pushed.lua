-- pq_send_pushed: takes in messages that the same MULTI ... EXEC has pushed to their places just before:
--   MULTI · RPUSH <queue>:seg:<segment> message message ... (for each segment they fall into) · FCALL pq_send_pushed ... · EXEC
-- It is pq_send for larger batches: bodies that pass through Lua cost three times as much. Where the places are follows from
-- the caller's guess of the last sequence number; a wrong one only costs time. None of the messages has a schedule.
-- KEYS   queue
-- ARGV   guess, sizes (u32 little-endian each); then, each '' where there is none, and all left out from where no more comes:
--        session (of all of them; '' also where that is its id), times to live (ms, u48 little-endian each, 0 where a message
--        has none of its own), and fingerprints, sender, number as in pq_send
-- REPLY  as pq_send, but one text, which costs less to hand over: first, enqueued time (u64 little-endian), then the place of
--        each duplicate (u32). Where nothing is stored, the bodies are taken off the list again
-- ERROR  as pq_send: SENDFORGOTTEN · QUOTA · DISABLED · SESSIONREQUIRED
local PUSHED_MOST = 1024
local ANSWER = '<I8I8'

-- When each message expires (0: never), nil where none does.
local function expiries_of(now, ttl_ms, lives, count)
  if ttl_ms == 0 and lives == '' then return nil end
  local each = lives ~= '' and { unpack_struct('<' .. rep('I6', count), lives) } or {}
  for i = 1, count do
    local own = each[i] or 0
    if own == 0 or (ttl_ms > 0 and ttl_ms < own) then own = ttl_ms end
    each[i] = own > 0 and min(now + own, NEVER - 1) or 0
  end
  return each
end

command('pq_send_pushed', function(queue, argv)
  local guess, sizes, id, lives = tonumber(argv[1]), argv[2] or '', argv[3] or '', argv[4] or ''
  local fingerprints, sender, sent = argv[5] or '', argv[6] or '', whole(argv[7] or '0', 0, 2 ^ 47)
  local count, now = #sizes / 4, now_ms()
  if not sent or not guess or guess < 0 or guess % 1 ~= 0 or guess > NEVER or count < 1 or count > PUSHED_MOST or count % 1 ~= 0
    or (lives ~= '' and #lives ~= count * 6)
  then
    return refusal('BADCALL', 'pq_send_pushed takes a guess, 1..' .. PUSHED_MOST
      .. ' sizes, session, times to live, fingerprints, sender and number')
  end
  local s = kept_state(queue)
  if not s then
    local may
    may, s = pcall(load_state, queue, sender ~= '' and 'n' .. sender or nil)
    if not may then
      take_off_blindly(queue, guess, count)
      return type(s) == 'table' and s or redis.error_reply(s) -- Redis' pcall gives the words, newer ones a table
    end
  end
  local last, letters, no
  if sender ~= '' then
    last, letters = sender_of(s, sender)
    local outcome = outcome_of(last, letters, sent)
    if outcome == 'stored' then
      take_off(s, guess, count)
      return pack(ANSWER, 0, 0)
    end
    if outcome == 'forgotten' then
      no = refusal('SENDFORGOTTEN', 'send ' .. sent .. ' is too old to tell whether it was stored')
    end
  end
  local bytes = sum_of(sizes)
  no = no or not_sending(s) or no_room(s, bytes, count)
  local detects = s.config.dedupe_ms > 0
  if (fingerprints ~= '' or detects) and #fingerprints ~= count * FINGERPRINT then
    no = no or refusal('BADCALL', 'this queue detects duplicates: 12 bytes of fingerprint for each message are needed')
  end
  if no then
    take_off(s, guess, count)
    return no
  end
  local taken -- off the list
  if not s.config.has_sessions then
    id = nil
  elseif id == '' then -- the messages say whether they have a session
    taken = take_off(s, guess, count)
    no, id = may_take_in(s, taken, 1, count, fingerprints)
    if no then return no end
  end
  local duplicate = detects and duplicates_in(s, now, fingerprints)
  local first, places = s.tail + 1, EMPTY
  if duplicate then
    local rest
    rest, places = without_duplicates(taken or take_off(s, guess, count), 1, count, duplicate)
    first = #rest > 0 and store(s, now, rest, 1, #rest, id) or 0
  else
    local rest = taken or append_pushed(s, now, guess, count, sizes, bytes, expiries_of(now, s.config.ttl_ms, lives, count))
    if rest then
      store(s, now, rest, 1, #rest, id)
    elseif id then
      add_to_session(session_of(s, id), s, first, count)
    end
  end
  if sender ~= '' then remember_send(s, now, sender, last, letters, sent) end
  tidy(s)
  save(s)
  local reply = pack(ANSWER, first, now)
  for i = 1, #places do reply = reply .. pack('<I4', places[i]) end
  return reply
end)
