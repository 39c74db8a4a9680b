-- Duplicate detection: `<queue>:ids:<generation>` has fingerprint (12 bytes) → when it was sent, u32 milliseconds since the
-- generation began. A generation lasts as long as the window, so two of them cover it; what is older is deleted at once, and
-- a hit in the older one counts only where it is still within the window.

FINGERPRINT = 12
local NO_FINGERPRINT -- of a message without MessageId
local IDS_A_CALL = 2000

local function ids_key(s, generation)
  return s.queue .. ':ids:' .. generation
end

-- Begins a new generation where the window has passed, and lets go of what nobody asks for any more.
local function turn_generations(s, now)
  local window = s.config.dedupe_ms
  if s.ids > 0 and now < s.ids_start + window then return end
  if s.ids > 1 and s.ids_before_count > 0 then call('UNLINK', ids_key(s, s.ids - 1)) end
  if s.ids > 0 and now >= s.ids_start + 2 * window then
    if s.ids_count > 0 then call('UNLINK', ids_key(s, s.ids)) end
    s.ids_count = 0
  end
  s.ids_before, s.ids_before_count = s.ids_start, s.ids_count
  s.ids, s.ids_start, s.ids_count = s.ids + 1, now, 0
end

function generation_is_over(s, now)
  turn_generations(s, now)
  if s.ids_count + s.ids_before_count > 0 then
    add_due(s, 'i', s.ids_start + max(1, s.config.dedupe_ms))
  else
    not_due(s, 'i')
  end
end

-- When each of these ids was sent last, within a generation: false where it was not.
local function seen_in(s, generation, fingerprints)
  if not fingerprints[2] then return { call('HGET', ids_key(s, generation), fingerprints[1]) } end
  if #fingerprints <= IDS_A_CALL then return call('HMGET', ids_key(s, generation), unpack(fingerprints)) end
  local seen = {}
  for i = 1, #fingerprints, IDS_A_CALL do
    local part = call('HMGET', ids_key(s, generation), unpack(fingerprints, i, min(#fingerprints, i + IDS_A_CALL - 1)))
    for j = 1, #part do seen[i + j - 1] = part[j] end
  end
  return seen
end

local PRINTS_AT_ONCE = 64
local PRINTS -- the format of so many fingerprints

-- A blob of fingerprints as a list, and how many they are.
local function each_fingerprint(blob)
  local count = #blob / FINGERPRINT
  local list = { unpack_struct(sub(PRINTS, 1, min(count, PRINTS_AT_ONCE) * 3), blob) }
  for i = PRINTS_AT_ONCE + 1, count, PRINTS_AT_ONCE do
    local part = { unpack_struct(sub(PRINTS, 1, min(count - i + 1, PRINTS_AT_ONCE) * 3), blob, (i - 1) * FINGERPRINT + 1) }
    for j = 1, #part - 1 do list[i + j - 1] = part[j] end
  end
  list[count + 1] = nil -- where struct.unpack has stopped
  return list, count
end

local function remember(s, values)
  local new = 0
  for i = 1, #values, 2 * IDS_A_CALL do
    new = new + call('HSET', ids_key(s, s.ids), unpack(values, i, min(#values, i + 2 * IDS_A_CALL - 1)))
  end
  if new > 0 and s.ids_count == 0 then add_due_sooner(s, 'i', s.ids_start + s.config.dedupe_ms) end
  s.ids_count = s.ids_count + new
  return new
end

-- Remembers them at once where all are new, as most are; true, or false where some may be duplicates, of others or of each
-- other: those that were new are remembered all the same, as they would be.
local function remember_new(s, list, count, current, older, at)
  local values, n = {}, 0
  for i = 1, count do
    local fingerprint = list[i]
    if current[i] or older[i] or fingerprint == NO_FINGERPRINT then return false end
    values[n + 1], values[n + 2] = fingerprint, at
    n = n + 2
  end
  return remember(s, values) == count
end

-- Which of the messages (by place, from 1) are duplicates, nil where none is; the others are remembered. `blob` has 12 bytes
-- for each.
function duplicates_in(s, now, blob)
  if not NO_FINGERPRINT then
    NO_FINGERPRINT = rep('\0', FINGERPRINT)
    PRINTS = rep('c' .. FINGERPRINT, PRINTS_AT_ONCE)
  end
  turn_generations(s, now)
  local at = pack('<I4', max(0, now - s.ids_start))
  local list, count = each_fingerprint(blob)
  local current = s.ids_count > 0 and seen_in(s, s.ids, list) or EMPTY
  local older = s.ids_before_count > 0 and seen_in(s, s.ids - 1, list) or EMPTY
  if remember_new(s, list, count, current, older, at) then return nil end
  local oldest, new, values, duplicate = now - s.config.dedupe_ms, {}, {}, nil
  for i = 1, count do
    local fingerprint = list[i]
    if fingerprint ~= NO_FINGERPRINT then
      if new[fingerprint]
        or (current[i] and s.ids_start + unpack_struct('<I4', current[i]) > oldest)
        or (older[i] and s.ids_before + unpack_struct('<I4', older[i]) > oldest)
      then
        duplicate = duplicate or {}
        duplicate[i] = true
      else
        new[fingerprint] = true
        values[#values + 1] = fingerprint
        values[#values + 1] = at
      end
    end
  end
  remember(s, values)
  return duplicate
end
