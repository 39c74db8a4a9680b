-- Older layouts, brought to this one by the first call that meets them.
--
-- Layout 1 (library 0.1.0) had a field for each counter, `in` and `out` for the bytes, expiries of all locks in `<queue>:due`,
-- the bytes before each segment but no sizes, and senders in `<queue>:senders:<bucket>` of ten minutes each.

local OLD_RUN, OLD_RUN_SIZE, OLD_GONE_SIZE = '<I8I8I2I4I8B', 31, 10

local function migrate_sizes(s, segment)
  local bodies = call('LRANGE', names_of(s.queue, segment).list, 0, -1)
  for i = 1, #bodies do bodies[i] = pack('<I4', #bodies[i]) end
  call('SET', names_of(s.queue, segment).sizes, table.concat(bodies))
end

local function migrate_senders(s, now)
  for age = 3, -1, -1 do
    local key = s.queue .. ':senders:' .. (floor(now / 600000) - age)
    local records = call('HGETALL', key)
    for i = 1, #records, 2 do
      local last, letters = unpack_struct('<I6', records[i + 1]), sub(records[i + 1], 7)
      put(s, 'n' .. records[i], pack('<I6I6', last, now) .. letters)
      add_due(s, 'n' .. records[i], now + SENDER_KEPT_MS)
    end
    call('UNLINK', key)
  end
end

-- `fresh`: the counters of a queue that holds nothing.
function migrate(queue, fresh)
  local flat, old = call('HGETALL', queue), {}
  for i = 1, #flat, 2 do old[flat[i]] = flat[i + 1] end
  if not (old.tail or old.partitions) then return false end
  if reading then
    error(refusal('TRYAGAIN', 'the data has an older layout, and this command only reads: any other brings it up to date'))
  end
  local function count(name) return tonumber(old[name] or 0) end
  call('HSET', queue, 'c', fresh)
  local s = load_state(queue)
  s.tail, s.head, s.run, s.swept = count('tail'), count('head'), count('run'), count('run')
  s.messages, s.bytes = s.tail - count('gone'), count('in') - count('out')
  s.locked, s.claimed, s.marked = count('locked'), count('claimed'), count('marked')
  s.due = 0 -- to be looked at
  s.returned = call('ZCARD', queue .. ':returned')
  for name, value in pairs(old) do
    local kind, rest = sub(name, 1, 1), sub(name, 2)
    if not string.find(rest, '^%d+$') then
      if name ~= 'c' then drop(s, name) end
    elseif kind == 'r' then
      local until_ms, first, size, deliveries, bytes, renewed = unpack_struct(OLD_RUN, value)
      put_run(s, { id = rest, until_ms = until_ms, first = first, count = size, deliveries = deliveries, bytes = bytes,
        renewed = renewed == 1, indexed = until_ms > 0, held = sub(value, OLD_RUN_SIZE + 1) })
      s.runs = s.runs + 1
    elseif kind == 'g' then
      local bytes, gone = unpack_struct('<I8I2', value)
      put(s, name, pack(GONE, bytes, gone, 0) .. sub(value, OLD_GONE_SIZE + 1))
      s.waste, s.dead = s.waste + bytes, s.dead + gone
    elseif kind == 'b' then
      drop(s, name)
      migrate_sizes(s, rest)
    end
  end
  if old.partitions then
    local config = settings_of(default_config())
    config.partition, config.partitions = count('partition'), count('partitions')
    put(s, 'config', written_config(config))
  end
  migrate_senders(s, now_ms())
  write_fields(s)
  return true
end
