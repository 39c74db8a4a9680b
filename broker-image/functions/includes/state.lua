-- The state hash of a queue, `<queue>`: read in one call when a command begins, written in one when it ends.
--
--   c                 the counters of every day, packed (counters.lua)
--   k                 the rare ones
--   config            what pq_configure was told (config.lua)
--   r<run>            a run (runs.lua)
--   g<segment>        what has gone from a segment (gone.lua)
--   d<segment>        which of its messages are deferred, h<segment> which are scheduled (parked.lua)
--   s<session>        a session (sessions.lua)
--   n<sender>         the last sends of a sender (senders.lua)
--
local VALUES_A_CALL = 4000 -- even; Lua unpacks just under 8000
local COMMANDS_KEPT = 512 -- then all fields are forgotten, so that they stay few

-- The state that a command reads first is kept for the next one: where nobody else has written meanwhile (`intact` is what this
-- library has written last, and all of it through KEPT) its counters and fields are what they should be.
local KEPT

function begin_command()
  KEPT = KEPT or new_state()
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

local function begin_with(s)
  if s.rarely and not s.rare_changed then forget_rare(s) end
  s.work, s.subs, s.its_sessions, s.more, s.rare_changed = 0, false, false, false, false
end

-- The kept state, where it is this queue's and fits; nil where it must be loaded.
function kept_state(queue)
  local s = KEPT
  local intact = s.intact
  if not intact or s.queue ~= queue or s.taken then return nil end
  s.intact = false -- until it is written
  if call('HGET', queue, 'c') ~= intact then return nil end
  local uses = s.uses + 1
  s.taken, s.packed, s.uses = true, intact, uses
  if uses == COMMANDS_KEPT or s.changes > 0 then -- what a command put after it had saved is not what is stored
    s.changed, s.value, s.known, s.times, s.changes, s.uses, s.rare_changed = {}, {}, {}, {}, 0, 0, false
  end
  begin_with(s)
  return s
end

-- The state, with up to three fields that the caller will ask for.
function load_state(queue, one, two, three)
  local s = kept_state(queue)
  if s then return s end
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
  s = KEPT.taken and new_state() or KEPT
  s.taken, s.intact = true, false
  if byte(packed) ~= LAYOUT_VERSION then too_new(packed) end
  unpack_counters(s, packed)
  s.queue, s.root, s.packed, s.config = queue, root_of(queue), packed, config_of(values[2])
  s.changed, s.known, s.times, s.uses, s.changes = {}, {}, {}, 0, 0
  s.value = { [one or 0] = values[3], [two or 1] = values[4], [three or 2] = values[5] }
  s.rare_changed = false
  begin_with(s)
  s.was_ready, s.was_due = ready(s), s.due
  return s
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

-- Those that settle many change the same few fields in turn: each need not be noted every time. Twice does no harm.
local function note_change(s, name)
  local changed, n = s.changed, s.changes
  if changed[n] == name or changed[n - 1] == name then return end
  s.changes, changed[n + 1] = n + 1, name
end

function put(s, name, value)
  s.value[name] = value
  note_change(s, name)
end

function drop(s, name)
  s.value[name] = false
  note_change(s, name)
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

-- ---- writing

function write_fields(s)
  if s.rarely then put_rare(s) end
  local fields, n, dead, deads = s.fields, 0, nil, nil
  local queue, packed, value, changed = s.queue, packed_counters(s), s.value, s.changed
  if packed ~= s.packed then
    fields[1], fields[2], n = 'c', packed, 2
  end
  for i = 1, s.changes do
    local name = changed[i]
    local written = value[name]
    if written then
      fields[n + 1], fields[n + 2] = name, written
      n = n + 2
    else
      value[name] = nil
      if dead then
        deads = deads or { dead }
        deads[#deads + 1] = name
      end
      dead = name
    end
  end
  s.changes = 0
  if n == 2 then
    call('HSET', queue, fields[1], fields[2])
  elseif n == 4 then
    call('HSET', queue, fields[1], fields[2], fields[3], fields[4])
  else
    for i = 1, n, VALUES_A_CALL do call('HSET', queue, unpack(fields, i, min(n, i + VALUES_A_CALL - 1))) end
  end
  if deads then
    for i = 1, #deads, VALUES_A_CALL do call('HDEL', queue, unpack(deads, i, min(#deads, i + VALUES_A_CALL - 1))) end
  elseif dead then
    call('HDEL', queue, dead)
  end
  s.packed, s.intact = packed, packed
  if s ~= KEPT and queue == KEPT.queue then KEPT.intact = false end
end

-- Whoever waits is told: something is ready where nothing was, or something falls due sooner than was known.
local function tell(s)
  local now_ready, due = s.messages - s.locked - s.claimed - s.deferred - s.scheduled, s.due
  if (s.was_ready <= 0 and now_ready > 0 and not s.config.has_sessions) or due < s.was_due then
    call('PUBLISH', s.queue .. ':wake', '')
  end
  s.was_ready, s.was_due = now_ready, due
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
  if s.root == s.queue then
    s.sub_bytes, s.sub_charge = s.sub_bytes + sub_bytes, s.sub_charge + sub_charge
  end
  if s.its_sessions then finish_sessions(s) end
  write_fields(s)
  tell(s)
  return sub_bytes + s.bytes - bytes, sub_charge + the_charge(s) - charged
end

-- Ends a command that has put one field, dropped another, changed counters, and made nothing ready or due: as tidy and save
-- would, in a third of the time. False, and nothing has been done, where there is more to it.
function write_settled(s, dropped, field, value)
  if s.changes > 0 or s.rarely or s.subs or s.its_sessions or s.root ~= s.queue or not is_tidy(s) then return false end
  local queue, values, packed = s.queue, s.value, packed_counters(s)
  call('HSET', queue, 'c', packed, field, value)
  call('HDEL', queue, dropped)
  values[field], values[dropped] = value, nil
  s.packed, s.intact = packed, packed
  return true
end

-- Ends a command that may have changed something.
function save(s)
  local root = s.root
  if root == s.queue and not s.subs then
    if s.its_sessions then finish_sessions(s) end
    write_fields(s)
    tell(s)
    return
  end
  local bytes, charge = write(s)
  if root ~= s.queue and (bytes ~= 0 or charge ~= 0) then
    local of = load_state(root)
    of.sub_bytes, of.sub_charge = of.sub_bytes + bytes, of.sub_charge + charge
    write_fields(of)
  end
end
