-- The state hash of a queue, `<queue>`: read in one call when a command begins, written in one when it ends.
--
--   c                 the counters, packed: COUNTERS of every day, and behind them MORE_COUNTERS where one of those is not 0
--   k                 RARE_COUNTERS
--   config            what pq_configure was told (config.lua)
--   r<run>            a run (runs.lua)
--   g<segment>        what has gone from a segment (gone.lua)
--   d<segment>        which of its messages are deferred, h<segment> which are scheduled (parked.lua)
--   s<session>        a session (sessions.lua)
--   n<sender>         the last sends of a sender (senders.lua)
--
-- The counters: tail, the sequence number of the last message stored; head, of the last one handed out for the first time;
-- holes, how many beyond head are gone or scheduled; messages stored and their bytes; how many of them are locked, claimed,
-- deferred, scheduled; waste and dead, bytes and messages gone from segments that are still there; run, the number of the last run; runs alive, and
-- how many of these are returned; swept, up to which run locks have been looked at; fifo_until, the last expiry among the
-- locks that expire in the order of their runs; due, no work falls due before it; marked, the last enqueued-time mark;
-- expiry_mark, the last expiry in the tail's segment, and expiring, whether it has any; timed, segments with expiries;
-- side_charge, what the rare counters add to the charge.
-- Rare: sessions, how many are locked, and the bytes of their states; ids..., the two generations of message ids
-- (duplicates.lua); tidied, the segment tidied last; sub_bytes and sub_charge, of its sub-queues.

local COUNTERS = '<B' .. 'I6I6I6I6I6I6I6I6I6I6I6I6I6I6'
local COUNTERS_SIZE = 85
local MORE_COUNTERS = '<' .. 'I6I6I6I6I6I6I6I6' -- behind them, where any of these is not 0: to be written and read they cost, too
local RARE_COUNTERS = '<' .. 'I6I6I6I6I6I6I6I6I6I6I6'
local VALUES_A_CALL = 4000 -- even; Lua unpacks just under 8000
local RARE_NAMES = { 'sessions', 'sessions_locked', 'state_bytes', 'ids', 'ids_start', 'ids_count',
  'ids_before', 'ids_before_count', 'tidied', 'sub_bytes', 'sub_charge' }
local FRESH, RARELY -- the counters of a queue that holds nothing; loads the rare ones when one of them is asked for

local function prepare()
  FRESH = pack(COUNTERS, LAYOUT_VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NEVER, 0, 0)
  RARELY = { __index = function(s, name)
    if s.rarely ~= false then return nil end
    local rare = get(s, 'k')
    s.rare, s.rarely = rare, true
    if rare then
      s.sessions, s.sessions_locked, s.state_bytes, s.ids, s.ids_start, s.ids_count, s.ids_before,
      s.ids_before_count, s.tidied, s.sub_bytes, s.sub_charge
        = unpack_struct(RARE_COUNTERS, rare)
    else
      s.sessions, s.sessions_locked, s.state_bytes, s.ids, s.ids_start, s.ids_count, s.ids_before,
      s.ids_before_count, s.tidied, s.sub_bytes, s.sub_charge
        = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    end
    return rawget(s, name)
  end }
end

-- The state that a command reads first is kept for the next one, which fills it anew; where nobody else has written meanwhile
-- (`intact` is what this library has written last) its counters are what they should be.
local KEPT

local function new_state()
  return setmetatable({ taken = false, intact = false, rarely = false, rare = false }, RARELY)
end

function begin_command()
  if not KEPT then
    prepare()
    KEPT = new_state()
  end
  KEPT.taken = false
end

local function too_new(packed)
  error(refusal('NEWERLAYOUT', 'the data has layout ' .. byte(packed) .. ', and this library knows layouts up to '
    .. LAYOUT_VERSION .. ': run the newer version that wrote it'))
end

-- For commands that do without the state.
function check_layout(queue)
  local packed = call('HGET', queue, 'c')
  if packed and byte(packed) ~= LAYOUT_VERSION then too_new(packed) end
end

local function unpack_counters(s, packed)
  local _
  _,
  s.tail, s.head, s.messages, s.bytes, s.locked, s.waste, s.dead, s.run, s.runs, s.swept, s.fifo_until, s.due, s.marked,
  s.side_charge
    = unpack_struct(COUNTERS, packed)
  if #packed > COUNTERS_SIZE then
    s.holes, s.claimed, s.deferred, s.scheduled, s.returned, s.expiry_mark, s.expiring, s.timed
      = unpack_struct(MORE_COUNTERS, packed, COUNTERS_SIZE + 1)
  else
    s.holes, s.claimed, s.deferred, s.scheduled, s.returned, s.expiry_mark, s.expiring, s.timed = 0, 0, 0, 0, 0, 0, 0, 0
  end
end

local function packed_counters(s)
  local packed = pack(COUNTERS, LAYOUT_VERSION,
    s.tail, s.head, s.messages, s.bytes, s.locked, s.waste, s.dead, s.run, s.runs, s.swept, s.fifo_until, s.due, s.marked,
    s.side_charge)
  local holes, claimed, deferred, scheduled = s.holes, s.claimed, s.deferred, s.scheduled
  local returned, expiry_mark, expiring, timed = s.returned, s.expiry_mark, s.expiring, s.timed
  if holes + claimed + deferred + scheduled + returned + expiry_mark + expiring + timed == 0 then return packed end
  return packed .. pack(MORE_COUNTERS, holes, claimed, deferred, scheduled, returned, expiry_mark, expiring, timed)
end

-- The state, with up to three fields that the caller will ask for.
function load_state(queue, one, two, three)
  local values
  if not one then
    values = call('HMGET', queue, 'c', 'config')
  elseif not two then
    values = call('HMGET', queue, 'c', 'config', one)
  elseif not three then
    values = call('HMGET', queue, 'c', 'config', one, two)
  else
    values = call('HMGET', queue, 'c', 'config', one, two, three)
  end
  local packed = values[1]
  if not packed then
    if call('EXISTS', queue) == 1 and migrate(queue, FRESH) then return load_state(queue, one, two, three) end
    packed = FRESH
  end
  local s = KEPT.taken and new_state() or KEPT
  s.taken = true
  local fits = s.intact == packed and s.queue == queue
  s.intact = false -- until it is written
  if not fits then
    if byte(packed) ~= LAYOUT_VERSION then too_new(packed) end
    unpack_counters(s, packed)
    s.changed = {}
  elseif next(s.changed) then
    s.changed = {} -- what an earlier command put after it had saved: its values are not here, and nothing of it may be written
  end
  if s.rarely then
    for i = 1, #RARE_NAMES do s[RARE_NAMES[i]] = nil end
  end
  s.queue, s.packed, s.config = queue, packed, config_of(values[2])
  s.value = { [one or 0] = values[3], [two or 1] = values[4], [three or 2] = values[5] }
  s.was_ready, s.was_due = s.messages - s.locked - s.claimed - s.deferred - s.scheduled, s.due
  s.work, s.subs, s.its_sessions, s.more, s.rarely = 0, false, false, false, false
  return s
end

-- What a partition's memory is charged with, in bytes: an upper bound of what it takes. Measured by benchmarks/broker_memory.py.
local CHARGE = { message = 48, dead = 32, run = 200, parked = 16, session = 544, id = 112 }

-- Writes the rare counters where they were asked for and have changed.
local function put_rare(s)
  if not s.rarely then return end
  local rare = pack(RARE_COUNTERS,
    s.sessions, s.sessions_locked, s.state_bytes, s.ids, s.ids_start, s.ids_count, s.ids_before, s.ids_before_count,
    s.tidied, s.sub_bytes, s.sub_charge)
  if rare == s.rare then return end
  s.side_charge = s.sub_charge + s.state_bytes + CHARGE.session * s.sessions + CHARGE.id * (s.ids_count + s.ids_before_count)
  s.rare = rare
  put(s, 'k', rare)
end

-- A field's value, or false.
function get(s, name)
  local value = s.value[name]
  if value == nil then
    value = call('HGET', s.queue, name)
    s.value[name] = value
  end
  return value
end

function put(s, name, value)
  s.value[name] = value
  s.changed[name] = true
end

function drop(s, name)
  s.value[name] = false
  s.changed[name] = true
end

-- Messages that a receiver could have now.
function ready(s)
  return s.messages - s.locked - s.claimed - s.deferred - s.scheduled
end

-- ---- due work: `<queue>:due` has what falls due, by time. A member is a run whose lock expires out of turn, or a letter and
-- what it is about: x<segment> messages expire, s<segment> scheduled ones come, l<session> its lock expires, n<sender> it is
-- forgotten, i the ids of a generation are forgotten.

function add_due(s, member, at)
  call('ZADD', s.queue .. ':due', text(at), member)
  if at < s.due then s.due = at end
end

-- The same, unless it is due sooner already.
function add_due_sooner(s, member, at)
  call('ZADD', s.queue .. ':due', 'LT', text(at), member)
  if at < s.due then s.due = at end
end

function not_due(s, member)
  call('ZREM', s.queue .. ':due', member)
end

-- ---- sub-queues: $DeadLetterQueue and $Transfer, each with a state of its own, written together with their queue's

function sub_queue(s, suffix)
  s.subs = s.subs or {}
  local its = s.subs[suffix]
  if not its then
    its = load_state(s.queue .. suffix)
    s.subs[suffix] = its
  end
  return its
end

-- The charge of a queue, without its sub-queues and what else is rare.
local function the_charge(s)
  return s.bytes + s.waste + CHARGE.message * s.messages + CHARGE.dead * s.dead + CHARGE.run * s.runs
    + CHARGE.parked * (s.deferred + s.scheduled)
end

function charge_of(s)
  put_rare(s)
  return the_charge(s) + s.side_charge
end

-- What storing messages adds to the charge.
function charge_for(bytes, messages)
  return bytes + CHARGE.message * messages
end

-- ---- writing

local FIELDS = {} -- what one HSET says: as long as the longest so far

function write_fields(s)
  put_rare(s)
  local fields, n, dead = FIELDS, 0, nil
  local queue, packed, value, changed = s.queue, packed_counters(s), s.value, s.changed
  if packed ~= s.packed then
    fields[1], fields[2], n = 'c', packed, 2
  end
  for name in next, changed do
    local written = value[name]
    if written then
      fields[n + 1], fields[n + 2] = name, written
      n = n + 2
    else
      dead = dead or {}
      dead[#dead + 1] = name
    end
    changed[name] = nil
  end
  if n == 4 then
    call('HSET', queue, fields[1], fields[2], fields[3], fields[4])
  else
    for i = 1, n, VALUES_A_CALL do call('HSET', queue, unpack(fields, i, min(n, i + VALUES_A_CALL - 1))) end
  end
  for i = 1, dead and #dead or 0, VALUES_A_CALL do call('HDEL', queue, unpack(dead, i, min(#dead, i + VALUES_A_CALL - 1))) end
  s.packed, s.intact = packed, packed
end

-- Writes a queue and its sub-queues; returns by how much their bytes and their charge have grown.
local function write(s)
  local before = {}
  unpack_counters(before, s.packed or FRESH)
  local charged, bytes = the_charge(before), before.bytes
  local sub_bytes, sub_charge = 0, 0
  if s.subs then
    for _, its in pairs(s.subs) do
      local more_bytes, more_charge = write(its)
      sub_bytes, sub_charge = sub_bytes + more_bytes, sub_charge + more_charge
    end
  end
  if root_of(s.queue) == s.queue then
    s.sub_bytes, s.sub_charge = s.sub_bytes + sub_bytes, s.sub_charge + sub_charge
  end
  if s.its_sessions then finish_sessions(s) end
  write_fields(s)
  -- Whoever waits is told: something is ready where nothing was, or something falls due sooner than was known.
  if (ready(s) > 0 and s.was_ready <= 0 and not s.config.has_sessions) or s.due < s.was_due then
    call('PUBLISH', s.queue .. ':wake', '')
  end
  return sub_bytes + s.bytes - bytes, sub_charge + the_charge(s) - charged
end

-- Ends a command that may have changed something.
function save(s)
  local root = root_of(s.queue)
  if root == s.queue and not s.subs then
    if s.its_sessions then finish_sessions(s) end
    write_fields(s)
    if (s.was_ready <= 0 and ready(s) > 0 and not s.config.has_sessions) or s.due < s.was_due then
      call('PUBLISH', s.queue .. ':wake', '')
    end
    return
  end
  local bytes, charge = write(s)
  if root ~= s.queue and (bytes ~= 0 or charge ~= 0) then
    local of = load_state(root)
    of.sub_bytes, of.sub_charge = of.sub_bytes + bytes, of.sub_charge + charge
    write_fields(of)
  end
end
