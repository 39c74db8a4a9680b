-- The counters of a queue, how they are packed in its state hash, and what its memory is charged with.
--
-- Of every day: tail, the sequence number of the last message stored; head, of the last one handed out for the first time;
-- holes, how many beyond head are gone or scheduled; messages stored and their bytes; how many of them are locked, claimed,
-- deferred, scheduled; waste and dead, bytes and messages gone from
-- segments that are still there; run, the number of the last run; runs alive, and how many of these are returned; swept, up to which run locks have been looked at; fifo_until, the last expiry among the
-- locks that expire in the order of their runs; due, no work falls due before it; marked, the last enqueued-time mark;
-- expiry_mark, the last expiry in the tail's segment, and expiring, whether it has any; timed, segments with expiries;
-- side_charge, what the rare counters add to the charge.
-- Rare: sessions, how many are locked, and the bytes of their states; ids..., the two generations of message ids
-- (duplicates.lua); tidied, the segment tidied last; sub_bytes and sub_charge, of its sub-queues.

local COUNTERS = '<B' .. 'I6I6I6I6I6I6I6I6I6I6I6I6I6I6'
local COUNTERS_SIZE = 85
local MORE_COUNTERS = '<' .. 'I6I6I6I6I6I6I6I6' -- behind them, where any of these is not 0: to be written and read they cost, too
local RARE_COUNTERS = '<' .. 'I6I6I6I6I6I6I6I6I6I6I6'
local RARE_NAMES = { 'sessions', 'sessions_locked', 'state_bytes', 'ids', 'ids_start', 'ids_count',
  'ids_before', 'ids_before_count', 'tidied', 'sub_bytes', 'sub_charge' }
FRESH = nil -- the counters of a queue that holds nothing
local RARELY -- loads the rare ones when one of them is asked for

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

function new_state()
  if not FRESH then prepare() end
  return setmetatable({ taken = false, queue = false, intact = false, uses = 0, fields = {}, rarely = false, rare = false }, RARELY)
end

function unpack_counters(s, packed)
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

function packed_counters(s)
  local packed = pack(COUNTERS, LAYOUT_VERSION,
    s.tail, s.head, s.messages, s.bytes, s.locked, s.waste, s.dead, s.run, s.runs, s.swept, s.fifo_until, s.due, s.marked,
    s.side_charge)
  local holes, claimed, deferred, scheduled = s.holes, s.claimed, s.deferred, s.scheduled
  local returned, expiry_mark, expiring, timed = s.returned, s.expiry_mark, s.expiring, s.timed
  if holes + claimed + deferred + scheduled + returned + expiry_mark + expiring + timed == 0 then return packed end
  return packed .. pack(MORE_COUNTERS, holes, claimed, deferred, scheduled, returned, expiry_mark, expiring, timed)
end

-- Those that no command asks for any more are read again when one does.
function forget_rare(s)
  for i = 1, #RARE_NAMES do s[RARE_NAMES[i]] = nil end
  s.rarely = false
end

-- What a partition's memory is charged with, in bytes: an upper bound of what it takes. Measured by benchmarks/broker_memory.py.
local CHARGE = { message = 48, dead = 32, run = 200, parked = 16, session = 544, id = 112 }

-- Writes the rare counters where they were asked for and have changed.
function put_rare(s)
  if not s.rarely then return end
  local rare = pack(RARE_COUNTERS,
    s.sessions, s.sessions_locked, s.state_bytes, s.ids, s.ids_start, s.ids_count, s.ids_before, s.ids_before_count,
    s.tidied, s.sub_bytes, s.sub_charge)
  if rare == s.rare then return end
  s.side_charge = s.sub_charge + s.state_bytes + CHARGE.session * s.sessions + CHARGE.id * (s.ids_count + s.ids_before_count)
  s.rare, s.rare_changed = rare, true
  put(s, 'k', rare)
end

-- The charge of a queue, without its sub-queues and what else is rare.
function the_charge(s)
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
