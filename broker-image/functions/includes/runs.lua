-- A run: messages first..first+count-1 of one segment that share a fate, kept as one record however many they are.
-- It is either locked by a receiver (`until_ms` > 0, in the sorted set `<queue>:due` by expiry) or returned and waiting
-- to be received again (`until_ms` = 0, in `<queue>:returned` by first sequence number). Its number is never used again,
-- so (sequence number, run) is a lock token that fences: whoever was locked out can settle nothing.
-- `held` has one bit a message that is still in the run; '' means all of them. `deliveries` counts those so far.
-- `renewed` is 1 where single messages have a longer lock than the run: `<queue>:renewed` has `<run>:<sequence>` by expiry.

local RUN = '<I8I8I2I4I8B'
local RUN_SIZE = 31

local function run_of(state, id)
  local record = get(state, 'r' .. id)
  if not record then return nil end
  local until_ms, first, count, deliveries, bytes, renewed = unpack_struct(RUN, record)
  return {
    id = id, until_ms = until_ms, first = first, count = count, deliveries = deliveries, bytes = bytes,
    renewed = renewed == 1, held = sub(record, RUN_SIZE + 1),
  }
end

local function put_run(state, run)
  put(state, 'r' .. run.id,
    pack(RUN, run.until_ms, run.first, run.count, run.deliveries, run.bytes, run.renewed and 1 or 0) .. run.held)
end

local function new_run(state, first, count, deliveries, bytes)
  local id = number(state, 'run') + 1
  put(state, 'run', id)
  return { id = text(id), until_ms = 0, first = first, count = count, deliveries = deliveries, bytes = bytes,
    renewed = false, held = '' }
end

local function holds(run, index)
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

-- Takes messages first..last (all held) out of a run; deletes the record with its last message.
local function shrink(state, run, first, last, bytes)
  if run.held == '' then
    if last - first + 1 == run.count then
      drop(state, 'r' .. run.id)
      run.count = 0
      return
    end
    run.held = full_bits(run.count)
  end
  run.held = change_bits(run.held, first - run.first, last - run.first, false)
  run.bytes = run.bytes - bytes
  if not string.find(run.held, '[^%z]') then
    drop(state, 'r' .. run.id)
    run.count = 0
  else
    put_run(state, run)
  end
end

local function first_held(run)
  local index = 0
  while not holds(run, index) do index = index + 1 end
  return index
end

-- Caches, never the truth: nil means unknown. A broker that restarts or loads the library anew starts with none.
local returned_seen = {} -- false: `<queue>:returned` is known to be empty
local next_due = {}      -- a lower bound of the first expiry in `<queue>:due`

-- Puts messages, no longer locked, among the returned ones. A new number makes their old lock tokens worthless.
local function give_back(state, first, count, deliveries, held)
  local run = new_run(state, first, count, deliveries, 0)
  run.held = held
  put_run(state, run)
  call('ZADD', state.queue .. ':returned', text(first + first_held(run)), run.id)
  returned_seen[state.queue] = nil
end

-- Takes at most `most` messages from the lowest returned run, stopping short of the next one: order is kept.
local function take_returned(state, most)
  local lowest = call('ZRANGE', state.queue .. ':returned', 0, 1, 'WITHSCORES')
  if not lowest[1] then return nil end
  local run = run_of(state, lowest[1])
  local from = first_held(run)
  local stop = min(run.count, lowest[4] and tonumber(lowest[4]) - run.first or run.count)
  local to = from
  while to - from + 1 < most and to + 1 < stop and holds(run, to + 1) do to = to + 1 end
  local first, last, deliveries = run.first + from, run.first + to, run.deliveries
  shrink(state, run, first, last, 0)
  if run.count == 0 then
    call('ZREM', state.queue .. ':returned', run.id)
  else
    call('ZADD', state.queue .. ':returned', text(run.first + first_held(run)), run.id)
  end
  return first, last, deliveries
end

-- The next messages in order, at most `most`, of one segment and one delivery count: first, last, deliveries so far.
-- They belong to the caller afterwards. Returned ones come first, each at its old place. Nil where there are none.
local function take(state, most)
  if returned_seen[state.queue] ~= false then
    local first, last, deliveries = take_returned(state, most)
    if first then return first, last, deliveries end
    returned_seen[state.queue] = false
  end
  local head, tail = number(state, 'head'), number(state, 'tail')
  if head >= tail then return nil end
  local last = min(head + most, tail, (segment_of(head + 1) + 1) * SEGMENT)
  put(state, 'head', last)
  return head + 1, last, 0
end
