-- What the broker reads in, and writes into, the stored form of a message (docs/reference/stored-message.md).

local HAS_SESSION, HAS_TTL, IS_SCHEDULED, HAS_CHANGES = 1, 8, 16, 64
local SECTIONS_AT = 64

function has(flags, flag)
  return floor(flags / flag) % 2 == 1
end

-- Its session id, or nil.
function session_id_of(body)
  if #body < SECTIONS_AT or byte(body, 2) % 2 == 0 then return nil end
  local length, at = unpack_struct('<I2xxxxxxI4', body, 5)
  return sub(body, at + 1, at + length)
end

-- When a message that becomes ready at `now` expires; 0: never.
function expiry_of(body, flags, now, ttl_ms)
  if has(flags, HAS_TTL) and #body >= SECTIONS_AT then
    local own = unpack_struct('<i8', body, 33)
    if own > 0 and (ttl_ms == 0 or own < ttl_ms) then ttl_ms = own end
  end
  return ttl_ms > 0 and min(now + ttl_ms, NEVER - 1) or 0
end

-- When a message wants to be enqueued; 0: at once.
function scheduled_time_of(body, flags, now)
  if not has(flags, IS_SCHEDULED) or #body < SECTIONS_AT then return 0 end
  local at = unpack_struct('<i8', body, 41)
  return at > now and min(at, NEVER - 1) or 0
end

-- A body with more changes to its application properties (an AMQP map).
function changed(body, changes)
  if changes == '' or #body < SECTIONS_AT then return body end
  local flags, at = byte(body, 2), sub(body, 57, 60)
  if not has(flags, HAS_CHANGES) then
    flags, at = flags + HAS_CHANGES, pack('<I4', #body)
  end
  return sub(body, 1, 1) .. char(flags) .. sub(body, 3, 56) .. at .. sub(body, 61) .. changes
end

-- A body as it goes to a sub-queue: it remembers its deliveries and the number it had, and has no time to live there.
function moved(body, deliveries, sequence, changes)
  if #body < SECTIONS_AT then return body end
  local flags = byte(body, 2)
  if has(flags, HAS_TTL) then flags = flags - HAS_TTL end
  if has(flags, IS_SCHEDULED) then flags = flags - IS_SCHEDULED end
  local before, first_number = unpack_struct('<I4', body, 29), unpack_struct('<I8', body, 49)
  return changed(sub(body, 1, 1) .. char(flags) .. sub(body, 3, 28) .. pack('<I4', min(before + deliveries, 2 ^ 32 - 1))
    .. sub(body, 33, 48) .. pack('<I8', first_number > 0 and first_number or sequence) .. sub(body, 57), changes)
end

-- A body as it comes back from a dead-letter queue: nothing delivered yet, and no reason for being dead.
function revived(body, changes)
  if #body < SECTIONS_AT then return body end
  return changed(sub(body, 1, 28) .. pack('<I4', 0) .. sub(body, 33), changes)
end

-- An AMQP map of names to texts of less than 256 bytes (AMQP 1.0 §1.6.22, str8-utf8; false becomes null).
function amqp_map(...)
  local items = { ... }
  for i = 1, #items do
    items[i] = items[i] and '\161' .. char(#items[i]) .. items[i] or '\64'
  end
  local content = table.concat(items)
  return '\209' .. pack('>I4I4', #content + 4, #items) .. content
end
