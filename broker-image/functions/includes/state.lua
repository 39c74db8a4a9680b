-- The state hash of a queue, `<queue>`: read in one call when a command begins, written in one when it ends.
--
--   tail    sequence number of the last message stored          head    of the last one handed out for the first time
--   in      bytes ever stored                                   out     bytes ever taken out
--   gone    messages ever taken out                             locked  messages under a receiver's lock
--   claimed messages in claim logs                              run     number of the last run
--   partition, partitions  which one this is, of how many (pq_configure)
--   marked  time of the last enqueued-time mark                 r<run>  a run (runs.lua)
--   b<segment>, g<segment>  bytes before, and what has gone from, a segment (segments.lua)

local VALUES_A_CALL = 4000 -- even; Lua unpacks just under 8000

local function load_state(queue, ...)
  local values, names = call('HMGET', queue, ...), { ... }
  local value = {}
  for i = 1, #names do value[names[i]] = values[i] end
  return { queue = queue, value = value, changed = {} }
end

-- A field's value, or false.
local function get(state, name)
  local value = state.value[name]
  if value == nil then
    value = call('HGET', state.queue, name)
    state.value[name] = value
  end
  return value
end

local function number(state, name)
  return tonumber(get(state, name) or 0)
end

local function put(state, name, value)
  state.value[name] = value
  state.changed[name] = true
end

local function drop(state, name)
  put(state, name, false)
end

local function save(state)
  local fields, dead, n = {}, {}, 0
  for name in pairs(state.changed) do
    local value = state.value[name]
    if value == false then
      dead[#dead + 1] = name
    else
      fields[n + 1] = name
      fields[n + 2] = type(value) == 'number' and text(value) or value
      n = n + 2
    end
  end
  for i = 1, n, VALUES_A_CALL do call('HSET', state.queue, unpack(fields, i, min(n, i + VALUES_A_CALL - 1))) end
  for i = 1, #dead, VALUES_A_CALL do
    call('HDEL', state.queue, unpack(dead, i, min(#dead, i + VALUES_A_CALL - 1)))
  end
end
