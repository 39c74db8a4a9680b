-- What has gone from a segment is marked in the state field `g<segment>`: bytes gone, count gone, bytes blanked, one bit a
-- message. When all 256 have gone, the segment's keys are deleted.

GONE = '<I6I2I6'
local GONE_SIZE = 14
local BELOW = { [0] = 1, 2, 4, 8, 16, 32, 64, 128, 256 } -- powers of 2

-- ---- sets of messages within one segment or run: one bit each, bit 0 first, lowest bit of a byte first

function bit_is_set(bits, index)
  local value = byte(bits, floor(index / 8) + 1)
  return value ~= nil and floor(value / 2 ^ (index % 8)) % 2 == 1
end

-- Sets or clears the bits from..to (zero-based, inclusive).
function change_bits(bits, from, to, on)
  local first, last = (from - from % 8) / 8 + 1, (to - to % 8) / 8 + 1
  local low, high = 2 ^ (from % 8), 2 ^ (to % 8 + 1) -- from this value on, below that one
  if first == last then
    local value, mask = byte(bits, first), high - low
    return sub(bits, 1, first - 1) .. char(on and bit.bor(value, mask) or bit.band(value, 255 - mask)) .. sub(bits, first + 1)
  end
  local opening, closing = byte(bits, first), byte(bits, last)
  return sub(bits, 1, first - 1) .. char(on and bit.bor(opening, 256 - low) or bit.band(opening, low - 1))
    .. rep(on and '\255' or '\0', last - first - 1)
    .. char(on and bit.bor(closing, high - 1) or bit.band(closing, 256 - high)) .. sub(bits, last + 1)
end

-- All bits 0..count-1 set.
function full_bits(count)
  return rep('\255', floor(count / 8)) .. (count % 8 > 0 and char(2 ^ (count % 8) - 1) or '')
end

NO_BITS = nil -- none of a segment's

-- What has gone from a segment: bytes, count, bytes of these that are blanked, and the bits of the messages.
function gone_of(s, segment)
  local record = get(s, names_of(s.queue, segment).gone)
  if record then
    local bytes, count, blanked = unpack_struct(GONE, record)
    return bytes, count, blanked, sub(record, GONE_SIZE + 1)
  end
  NO_BITS = NO_BITS or rep('\0', SEGMENT / 8)
  return 0, 0, 0, NO_BITS
end

-- The bits of the messages that have gone from a segment, which may have gone altogether.
function absent_from(s, segment)
  local _, count, _, bits = gone_of(s, segment)
  if count == 0 and call('EXISTS', names_of(s.queue, segment).list) == 0 then return full_bits(SEGMENT) end
  return bits
end

local NONE_GONE -- the record of a segment from which nothing has gone

-- The same record with messages from..to of the segment gone, too.
local function gone_with(record, from, to, bytes, count, blanked)
  local low, high = from % 8, to % 8
  local at, till = (from - low) / 8 + GONE_SIZE + 1, (to - high) / 8 + GONE_SIZE + 1
  if at == till then
    return pack(GONE, bytes, count, blanked) .. sub(record, GONE_SIZE + 1, at - 1)
      .. char(bit.bor(byte(record, at), BELOW[high + 1] - BELOW[low])) .. sub(record, at + 1)
  end
  return pack(GONE, bytes, count, blanked) .. sub(record, GONE_SIZE + 1, at - 1)
    .. char(bit.bor(byte(record, at), 256 - BELOW[low])) .. rep('\255', till - at - 1)
    .. char(bit.bor(byte(record, till), BELOW[high + 1] - 1)) .. sub(record, till + 1)
end

-- Takes messages first..last (of one segment, all of them still there, `bytes` in all) out for ever. Returns the field that
-- says so and what is to be put there, nil where the whole segment has gone.
function mark_gone(s, segment, first, last, bytes)
  local names, count = names_of(s.queue, segment), last - first + 1
  local field = names.gone
  local record = get(s, field)
  if not record then
    NONE_GONE = NONE_GONE or pack(GONE, 0, 0, 0) .. rep('\0', SEGMENT / 8)
    record = NONE_GONE
  end
  local bytes_gone, count_gone, blanked = unpack_struct(GONE, record)
  s.bytes, s.messages = s.bytes - bytes, s.messages - count
  if count_gone + count == SEGMENT then
    s.waste, s.dead = s.waste - (bytes_gone - blanked), s.dead - count_gone
    call('UNLINK', names.list, names.times, names.sizes)
    if s.timed > 0 and call('UNLINK', names.expiry) == 1 then
      s.timed = s.timed - 1
      not_due(s, 'x' .. segment)
    end
    call('ZREM', s.queue .. ':segments', segment)
    if count_gone > 0 then drop(s, field) end
    return nil
  end
  s.waste, s.dead = s.waste + bytes, s.dead + count
  local base = segment * SEGMENT + 1
  return field, gone_with(record, first - base, last - base, bytes_gone + bytes, count_gone + count, blanked)
end

function remove(s, segment, first, last, bytes)
  local field, gone = mark_gone(s, segment, first, last, bytes)
  if field then put(s, field, gone) end
end

-- Puts another body in a message's place.
function rewrite(s, sequence, body, bytes_before)
  local segment = segment_of(sequence)
  call('LSET', names_of(s.queue, segment).list, sequence - segment * SEGMENT - 1, body)
  call('SETRANGE', names_of(s.queue, segment).sizes, (sequence - segment * SEGMENT - 1) * 4, pack('<I4', #body))
  s.bytes = s.bytes + #body - bytes_before
end

-- ---- tidying: a segment of which some messages stay for long keeps the bodies of those that have gone, until they are
-- blanked. It is done where much is wasted, one segment a call.

local WASTE_ALLOWED = 4194304 -- and a quarter of what is stored
local SEGMENT_WASTE = 4096 -- less in one segment is not worth the work
local SEGMENTS_LOOKED_AT = 8

local function blank(s, segment)
  local bytes, count, blanked, bits = gone_of(s, segment)
  local key = names_of(s.queue, segment).list
  for index = 0, SEGMENT - 1 do
    if bit_is_set(bits, index) then call('LSET', key, index, '') end
  end
  s.waste = s.waste - (bytes - blanked)
  put(s, names_of(s.queue, segment).gone, pack(GONE, bytes, count, bytes) .. bits)
end

function is_tidy(s)
  return s.waste <= WASTE_ALLOWED or s.waste <= s.bytes / 4
end

function tidy(s)
  if is_tidy(s) then return end
  local segments = call('ZRANGE', s.queue .. ':segments', text(s.tidied), '+inf', 'BYSCORE', 'LIMIT', 0, SEGMENTS_LOOKED_AT)
  s.tidied = 0
  for i = 1, #segments do
    local segment = tonumber(segments[i])
    local bytes, _, blanked = gone_of(s, segment)
    if #segments == SEGMENTS_LOOKED_AT then s.tidied = segment + 1 end
    if bytes - blanked >= SEGMENT_WASTE then
      blank(s, segment)
      s.tidied = segment + 1
      return
    end
  end
end
