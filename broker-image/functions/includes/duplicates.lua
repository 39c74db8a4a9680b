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

-- Which of the messages (by place, from 1) are duplicates, and what remember_ids is to keep of the others. `blob` has 12 bytes
-- for each.
function duplicates_in(s, now, blob)
  if not NO_FINGERPRINT then
    NO_FINGERPRINT = rep('\0', FINGERPRINT)
    PRINTS = rep('c' .. FINGERPRINT, PRINTS_AT_ONCE)
  end
  turn_generations(s, now)
  local fingerprints, duplicate, any, count = {}, {}, false, #blob / FINGERPRINT
  for i = 1, count, PRINTS_AT_ONCE do
    local part = { unpack_struct(sub(PRINTS, 1, min(count - i + 1, PRINTS_AT_ONCE) * 3), blob, (i - 1) * FINGERPRINT + 1) }
    if i == 1 then
      fingerprints = part
    else
      for j = 1, #part - 1 do fingerprints[i + j - 1] = part[j] end
    end
    fingerprints[min(i + PRINTS_AT_ONCE - 1, count) + 1] = nil -- where struct.unpack has stopped
  end
  local current = s.ids_count > 0 and seen_in(s, s.ids, fingerprints) or EMPTY
  local older = s.ids_before_count > 0 and seen_in(s, s.ids - 1, fingerprints) or EMPTY
  local oldest, new, values, n = now - s.config.dedupe_ms, {}, {}, 0
  local at = pack('<I4', max(0, now - s.ids_start))
  for i = 1, count do
    local fingerprint = fingerprints[i]
    if fingerprint ~= NO_FINGERPRINT then
      if new[fingerprint]
        or (current[i] and s.ids_start + unpack_struct('<I4', current[i]) > oldest)
        or (older[i] and s.ids_before + unpack_struct('<I4', older[i]) > oldest)
      then
        duplicate[i], any = true, true
      else
        new[fingerprint] = true
        values[n + 1], values[n + 2] = fingerprint, at
        n = n + 2
      end
    end
  end
  return any and duplicate or nil, values
end

-- `values`: fingerprint, when, ... as duplicates_in gives them.
function remember_ids(s, values)
  if #values == 0 then return end
  if s.ids_count == 0 then add_due_sooner(s, 'i', s.ids_start + s.config.dedupe_ms) end
  for i = 1, #values, 2 * IDS_A_CALL do
    s.ids_count = s.ids_count
      + call('HSET', ids_key(s, s.ids), unpack(values, i, min(#values, i + 2 * IDS_A_CALL - 1)))
  end
end
