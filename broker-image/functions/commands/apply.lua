-- pq_apply: a transaction: all of its operations are carried out, or none is.
-- KEYS   queue
-- ARGV   sender, number (as in pq_send; a repeat is recognised), session, session lock (as in pq_complete), then for each
--        operation (up to 100): name, target ('' or '/$Transfer'), count of its arguments, argument, ...
--          send         fingerprints, message, ...
--          complete     run, first, last, ...          abandon      counted or uncounted, changes, run, first, last, ...
--          defer        changes, run, first, last, ... dead_letter  changes, run, first, last, ...
-- REPLY  {sequence number of the first message sent, or 0; ...} one for each operation; {} where it was carried out before
-- ERROR  LOCKLOST  names the operation (from 0) whose lock is lost · what pq_send refuses · SESSIONLOCKLOST
local OPERATIONS_MOST = 100
local TRIPLES_AT = { complete = 0, defer = 1, dead_letter = 1, abandon = 2 } -- arguments before the triples

-- The operations as {name, state, from, to} of argv, or nil and a refusal.
local function operations_in(s, argv, at)
  local operations = {}
  while at <= #argv do
    local name, target, count = argv[at], argv[at + 1], whole(argv[at + 2], 1, 4000)
    local from, to = at + 3, at + 2 + (count or 0)
    if target ~= '' and s.root ~= s.queue then target = 'none' end -- a sub-queue has no transfers of its own
    if not count or (name == 'send' and count < 2) or to > #argv or (target ~= '' and target ~= '/$Transfer') or (name ~= 'send' and not TRIPLES_AT[name])
      or #operations == OPERATIONS_MOST
    then
      return nil, refusal('BADCALL', 'operation ' .. #operations .. ' of a transaction cannot be read, or is one too many')
    end
    operations[#operations + 1] = { name, target == '' and s or sub_queue(s, target), from, to }
    at = to + 1
  end
  return operations
end

-- Whether an operation can be carried out: nil, or a refusal. `taken` has what earlier ones settle.
local function check(s, now, argv, operation, place, its, taken)
  local name, on, from, to = unpack(operation)
  if name == 'send' then
    local no, id = may_take_in(on, argv, from + 1, to, argv[from])
    operation[5] = id
    return no
  end
  if on ~= s or (name == 'abandon' and argv[from] ~= 'counted' and argv[from] ~= 'uncounted') then
    return refusal('BADCALL', 'operation ' .. place .. ' of a transaction cannot be read')
  end
  if name == 'dead_letter' then
    local no = no_dead_letters(s.queue)
    if no then return no end
  end
  local bad = name ~= 'complete' and bad_changes(argv[from + TRIPLES_AT[name] - 1])
  if bad then return bad end
  from = from + TRIPLES_AT[name]
  bad = bad_triples(argv, from, to)
  if bad then return bad end
  for i = from, to, 3 do
    local first, last = argv[i + 1], argv[i + 2]
    local held = last - first < SEGMENT and locked_run(s, now, argv[i], first, last, its)
    for sequence = first, held and last or first - 1 do
      held = held and not taken[sequence]
      taken[sequence] = true
    end
    if not held then
      return refusal('LOCKLOST', 'the lock of a message in operation ' .. place .. ' has expired or is another receiver\'s')
    end
  end
end

local SETTLE = {
  complete = function(s, _, run, first, last) complete(s, run, first, last) end,
  defer = function(s, argv, run, first, last, _, from) put_aside(s, run, first, last, argv[from]) end,
  dead_letter = function(s, argv, run, first, last, _, from) put_away(s, run, first, last, argv[from]) end,
  abandon = function(s, argv, run, first, last, its, from)
    abandon(s, run, first, last, its, argv[from] == 'counted', argv[from + 1])
  end,
}

-- All that is sent, as one, must find room.
local function room_for(s, argv, operations)
  local bytes, count = 0, 0
  for i = 1, #operations do
    local name, _, from, to = unpack(operations[i])
    for j = from + 1, name == 'send' and to or from do bytes, count = bytes + #argv[j], count + 1 end
  end
  return count > 0 and no_room(s, bytes, count) or nil
end

command('pq_apply', function(queue, argv)
  local sender, sent = argv[1], whole(argv[2], 0, 2 ^ 47)
  if not sent or not argv[4] then return refusal('BADCALL', 'pq_apply takes sender, number, session, session lock, operations') end
  local now = now_ms()
  local s = load_state(queue)
  local last, letters
  if sender ~= '' then
    last, letters = sender_of(s, sender)
    local outcome = outcome_of(last, letters, sent)
    if outcome == 'stored' then return {} end
    if outcome == 'forgotten' then
      return refusal('SENDFORGOTTEN', 'transaction ' .. sent .. ' is too old to tell whether it was carried out')
    end
  end
  local its, no = held_session(s, now, argv[3], argv[4])
  if no then return no end
  local operations, unreadable = operations_in(s, argv, 5)
  if not operations then return unreadable end
  no = room_for(s, argv, operations)
  local taken = {}
  for place = 1, no and 0 or #operations do
    no = check(s, now, argv, operations[place], place - 1, its, taken)
    if no then break end
  end
  if no then return no end
  local reply = {}
  for place = 1, #operations do
    local name, on, from, to, id = unpack(operations[place], 1, 5)
    if name == 'send' then
      reply[place] = take_in(on, now, argv, from + 1, to, argv[from], id)[1]
    else
      reply[place] = 0
      each_lock(s, now, argv, from + TRIPLES_AT[name], to, its, function(run, first, stop)
        SETTLE[name](s, argv, run, first, stop, its, from)
      end)
    end
  end
  if sender ~= '' then remember_send(s, now, sender, last, letters, sent) end
  tidy(s)
  save(s)
  return reply
end)
