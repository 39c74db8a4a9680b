-- Segments: where bodies live. Message n of a queue is element (n-1) % 256 of the list `<queue>:seg:<(n-1) / 256>`,
-- so a place is found by arithmetic, a batch is stored by one RPUSH and read by one LRANGE, at any depth.
-- What has left a segment is marked in the state field `g<segment>` (bytes gone, count gone, one bit a message);
-- when all 256 have left, the list is deleted. State field `b<segment>` holds the bytes ever stored before it.
--
-- `<queue>:times:<segment>` holds the enqueued times as marks of 8 bytes, u16 index and u48 milliseconds (little-endian):
-- a mark is valid from its index up to the next mark.

local function segment_of(sequence)
  return floor((sequence - 1) / SEGMENT)
end

local function segment_key(queue, segment)
  return queue .. ':seg:' .. text(segment)
end

local function times_key(queue, segment)
  return queue .. ':times:' .. text(segment)
end

-- Appends messages argv[first..#argv] behind the tail.
local function append(state, now, argv, first)
  local queue, tail, bytes_in = state.queue, number(state, 'tail'), number(state, 'in')
  local n, i, marked = #argv, first, number(state, 'marked') == now
  while i <= n do
    local place = tail % SEGMENT
    local segment = (tail - place) / SEGMENT
    local last = min(n, i + SEGMENT - place - 1)
    if place == 0 then
      call('ZADD', queue .. ':segments', text(segment), text(segment))
      put(state, 'b' .. text(segment), bytes_in)
    end
    if place == 0 or not marked then
      call('APPEND', times_key(queue, segment), pack('<I2I6', place, now))
      marked = true
    end
    call('RPUSH', segment_key(queue, segment), unpack(argv, i, last))
    for j = i, last do bytes_in = bytes_in + #argv[j] end
    tail = tail + last - i + 1
    i = last + 1
  end
  put(state, 'tail', tail)
  put(state, 'in', bytes_in)
  put(state, 'marked', now)
end

-- The marks that cover messages first..last of one segment.
local function times_of(queue, segment, first, last)
  local marks = call('GET', times_key(queue, segment)) or ''
  local from, to = first - segment * SEGMENT - 1, last - segment * SEGMENT - 1
  local low, high = 0, #marks / 8 - 1
  while low < high do -- the last mark at or before `from`
    local middle = floor((low + high + 1) / 2)
    if unpack_struct('<I2', marks, middle * 8 + 1) <= from then low = middle else high = middle - 1 end
  end
  local stop = low + 1
  while stop * 8 < #marks and unpack_struct('<I2', marks, stop * 8 + 1) <= to do stop = stop + 1 end
  return sub(marks, low * 8 + 1, stop * 8)
end

local function bodies_of(queue, segment, first, last)
  local base = segment * SEGMENT + 1
  return call('LRANGE', segment_key(queue, segment), first - base, last - base)
end

local function bytes_of(queue, segment, first, last)
  local bodies, bytes = bodies_of(queue, segment, first, last), 0
  for i = 1, #bodies do bytes = bytes + #bodies[i] end
  return bytes
end

-- ---- sets of messages within one segment or run: one bit each, bit 0 first, lowest bit of a byte first

local function bit_is_set(bits, index)
  local value = byte(bits, floor(index / 8) + 1)
  return value ~= nil and floor(value / 2 ^ (index % 8)) % 2 == 1
end

-- Sets or clears the bits from..to (zero-based, inclusive).
local function change_bits(bits, from, to, on)
  local first, last = floor(from / 8), floor(to / 8)
  local out = {}
  for i = first, last do
    local low = i == first and from % 8 or 0
    local high = i == last and to % 8 or 7
    local mask = 2 ^ (high + 1) - 2 ^ low
    local value = byte(bits, i + 1)
    out[#out + 1] = char(on and bit.bor(value, mask) or bit.band(value, 255 - mask))
  end
  return sub(bits, 1, first) .. table.concat(out) .. sub(bits, last + 2)
end

-- All bits 0..count-1 set.
local function full_bits(count)
  return rep('\255', floor(count / 8)) .. (count % 8 > 0 and char(2 ^ (count % 8) - 1) or '')
end

local NO_BITS

-- What has gone from a segment: bytes, count, and the bits of the messages.
local function gone_of(state, segment)
  local record = get(state, 'g' .. text(segment))
  if record then
    local bytes, count = unpack_struct('<I8I2', record)
    return bytes, count, sub(record, 11)
  end
  NO_BITS = NO_BITS or rep('\0', SEGMENT / 8)
  return 0, 0, NO_BITS
end

-- Takes messages first..last (of one segment, all of them still there, `bytes` in all) out for ever.
local function remove(state, segment, first, last, bytes)
  local bytes_gone, count_gone, bits = gone_of(state, segment)
  local name, count = text(segment), last - first + 1
  put(state, 'out', number(state, 'out') + bytes)
  put(state, 'gone', number(state, 'gone') + count)
  if count_gone + count == SEGMENT then
    call('UNLINK', segment_key(state.queue, segment), times_key(state.queue, segment))
    call('ZREM', state.queue .. ':segments', name)
    drop(state, 'g' .. name)
    drop(state, 'b' .. name)
    return
  end
  local base = segment * SEGMENT + 1
  bits = change_bits(bits, first - base, last - base, true)
  put(state, 'g' .. name, pack('<I8I2', bytes_gone + bytes, count_gone + count) .. bits)
end

-- The bytes that a full segment still holds: what was stored in it less what has gone. They are read only where the next
-- segment has gone before it.
local function bytes_left(state, segment)
  local base = segment * SEGMENT
  local after = get(state, 'b' .. text(segment + 1))
  if not after and number(state, 'tail') > base + SEGMENT then
    return bytes_of(state.queue, segment, base + 1, base + SEGMENT)
  end
  after = after or get(state, 'in')
  local bytes_gone = gone_of(state, segment)
  return tonumber(after) - number(state, 'b' .. text(segment)) - bytes_gone
end
