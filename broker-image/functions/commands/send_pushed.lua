-- pq_send_pushed: takes in messages that the same MULTI ... EXEC has pushed to their places just before:
--   MULTI · RPUSH <queue>:seg:<segment> message message ... (for each segment they fall into) · FCALL pq_send_pushed ... · EXEC
-- It is pq_send for larger batches: bodies that pass through Lua cost three times as much. Where the places are follows from
-- the caller's guess of the last sequence number; a wrong one only costs time. None of the messages has a schedule.
-- KEYS   queue
-- ARGV   sender, number, fingerprints as in pq_send, session (of all of them; '' where that is its id, or none), guess, sizes (u32 little-endian each),
--        times to live ('' none; ms, u48 little-endian each, 0 where a message has none of its own)
-- REPLY  as pq_send. Where nothing is stored, the bodies are taken off the list again
-- ERROR  as pq_send: SENDFORGOTTEN · QUOTA · DISABLED · SESSIONREQUIRED
local PUSHED_MOST = 1024

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
  local sender, sent, fingerprints, id = argv[1], whole(argv[2], 0, 2 ^ 47), argv[3], argv[4]
  local guess, sizes, now = tonumber(argv[5]), argv[6] or '', now_ms()
  local count = #sizes / 4
  local lives = argv[7] or ''
  if not sent or not guess or guess < 0 or guess % 1 ~= 0 or guess > NEVER or count < 1 or count > PUSHED_MOST or count ~= floor(count) or (lives ~= '' and #lives ~= count * 6) then
    return refusal('BADCALL', 'pq_send_pushed takes sender, number, fingerprints, session, guess, 1..' .. PUSHED_MOST .. ' sizes and times to live')
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
      return { 0, 0 }
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
  if places == EMPTY then return { first, now } end
  return { first, now, unpack(places) }
end)
