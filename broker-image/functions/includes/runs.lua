-- A run: messages first..first+count-1 of one segment that share a fate, kept as one record however many they are.
-- It is locked by a receiver, or held in a session, or returned and waiting to be received again (in `<queue>:returned` by
-- first sequence number). Its number is never used again, so (sequence number, run) is a lock token that fences: whoever was
-- locked out can settle nothing.
-- `held` has one bit a message that is still in the run; '' means all of them. `deliveries` counts those so far. `until_ms`
-- is when the lock expires, 0 where it is returned, the number of the session's lock where it is held in a session.
-- Kinds: RENEWED single messages have a longer lock than the run, `<queue>:renewed` has `<run>:<sequence>` by expiry;
-- IN_SESSION; WAS_DEFERRED given back it is deferred again; INDEXED its expiry is in `<queue>:due`.

RUN = '<I6I6I2I2I6B'
local RUN_SIZE = 23
local RENEWED = 1
IN_SESSION, WAS_DEFERRED, INDEXED = 2, 4, 8

function run_from(id, record)
  local until_ms, first, count, deliveries, bytes, kinds = unpack_struct(RUN, record)
  if kinds == 0 and #record == RUN_SIZE then
    return {
      id = id, until_ms = until_ms, first = first, count = count, deliveries = deliveries, bytes = bytes,
      renewed = false, in_session = false, was_deferred = false, indexed = false, held = '',
    }
  end
  return {
    id = id, until_ms = until_ms, first = first, count = count, deliveries = deliveries, bytes = bytes,
    renewed = kinds % 2 == 1, in_session = has(kinds, IN_SESSION), was_deferred = has(kinds, WAS_DEFERRED),
    indexed = has(kinds, INDEXED), held = #record > RUN_SIZE and sub(record, RUN_SIZE + 1) or '',
  }
end

function run_of(s, id)
  local record = get(s, 'r' .. id)
  return record and run_from(id, record)
end

function put_run(s, run)
  put(s, 'r' .. run.id, pack(RUN, run.until_ms, run.first, run.count, run.deliveries, run.bytes,
    (run.renewed and RENEWED or 0) + (run.in_session and IN_SESSION or 0) + (run.was_deferred and WAS_DEFERRED or 0)
    + (run.indexed and INDEXED or 0)) .. run.held)
end

-- Completes all of a run, where it is as plain as most are and its receiver holds it, without making a table of it: true, or
-- false and nothing has been done; locked_run and complete know all cases. `at_once`: it is all that the command does, and is
-- written here, too, where that is possible; where it was, 'written' is returned.
function complete_plain(s, now, id, first, last, its, at_once)
  local name, count = 'r' .. id, last - first + 1
  local record = get(s, name)
  if not record or #record > RUN_SIZE then return false end
  local until_ms, its_first, its_count, _, bytes, kinds = unpack_struct(RUN, record)
  if its_first ~= first or its_count ~= count then return false end
  if its then
    if kinds ~= IN_SESSION or until_ms ~= its.lock then return false end
  elseif kinds ~= 0 or until_ms <= now then
    return false
  end
  s.runs, s.locked = s.runs - 1, s.locked - count
  local field, gone = mark_gone(s, segment_of(first), first, last, bytes)
  if at_once and gone and not its and write_settled(s, name, field, gone) then return 'written' end
  drop(s, name)
  if gone then put(s, field, gone) end
  return true
end

function drop_run(s, run)
  drop(s, 'r' .. run.id)
  s.runs = s.runs - 1
  run.count = 0
end

local function new_run(s, first, count, deliveries, bytes)
  s.run, s.runs = s.run + 1, s.runs + 1
  return { id = s.run, until_ms = 0, first = first, count = count, deliveries = deliveries, bytes = bytes, held = '' }
end

function holds(run, index)
  return run.held == '' or bit_is_set(run.held, index)
end

local function held_count(run)
  if run.held == '' then return run.count end
  local n = 0
  for i = 0, run.count - 1 do
    if bit_is_set(run.held, i) then n = n + 1 end
  end
  return n
end

-- Calls part(first, last) for each stretch of messages that the run still holds.
function each_stretch(run, part)
  if run.held == '' then return part(run.first, run.first + run.count - 1) end
  local index = 0
  while index < run.count do
    while index < run.count and not bit_is_set(run.held, index) do index = index + 1 end
    local from = index
    while index < run.count and bit_is_set(run.held, index) do index = index + 1 end
    if index > from then part(run.first + from, run.first + index - 1) end
  end
end

-- Takes messages first..last (all held) out of a run; deletes the record with its last message.
function shrink(s, run, first, last, bytes)
  if run.held == '' then
    if last - first + 1 == run.count then return drop_run(s, run) end
    run.held = full_bits(run.count)
  end
  run.held = change_bits(run.held, first - run.first, last - run.first, false)
  run.bytes = max(0, run.bytes - bytes)
  if string.find(run.held, '[^%z]') then put_run(s, run) else drop_run(s, run) end
end

function first_held(run)
  local index = 0
  while not holds(run, index) do index = index + 1 end
  return index
end

-- Puts messages, no longer locked, among the returned ones. A new number makes their old lock tokens worthless.
function return_run(s, first, count, deliveries, held)
  local run = new_run(s, first, count, min(deliveries, 65535), 0)
  run.held = held
  put_run(s, run)
  s.returned = s.returned + 1
  call('ZADD', s.queue .. ':returned', text(first + first_held(run)), run.id)
end

-- Takes first..last out of a returned run.
function shrink_returned(s, run, first, last)
  shrink(s, run, first, last, 0)
  if run.count == 0 then
    s.returned = s.returned - 1
    call('ZREM', s.queue .. ':returned', run.id)
  else
    call('ZADD', s.queue .. ':returned', text(run.first + first_held(run)), run.id)
  end
end
