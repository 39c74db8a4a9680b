-- Senders: a send whose reply was lost may be sent again, and is stored once. A sender (one connection's worth of sends to
-- one queue in one partition) numbers its sends; the broker keeps the last number and, for it and the 63 before it, whether
-- each was stored: `<queue>:senders:<bucket>` has `<sender>` -> u48 last number, then up to 64 letters, `s` stored, `-` not.
-- A bucket covers ten minutes and is kept for thirty, so a retry is recognised for at least twenty.

local SENDS_REMEMBERED = 64
local BUCKET_MS = 600000

local function senders_key(queue, bucket)
  return queue .. ':senders:' .. text(bucket)
end

-- What is known of a sender: last number, letters.
local function sender_of(queue, now, sender)
  local bucket = floor(now / BUCKET_MS)
  for age = -1, 2 do -- -1: the clock may have been set back over the edge of a bucket
    local record = call('HGET', senders_key(queue, bucket - age), sender)
    if record then return unpack_struct('<I6', record), sub(record, 7) end
  end
  return 0, ''
end

-- 'stored', 'new', or 'forgotten' where the number is too old to tell.
local function outcome_of(last, letters, sent)
  if sent > last then return 'new' end
  if last - sent >= #letters then return 'forgotten' end
  return byte(letters, #letters - (last - sent)) == 115 and 'stored' or 'new'
end

local function remember_send(queue, now, sender, last, letters, sent)
  if sent > last then
    letters = sub(letters .. rep('-', min(sent - last - 1, SENDS_REMEMBERED)) .. 's', -SENDS_REMEMBERED)
    last = sent
  else
    local place = #letters - (last - sent)
    letters = sub(letters, 1, place - 1) .. 's' .. sub(letters, place + 1)
  end
  local bucket = floor(now / BUCKET_MS)
  local key = senders_key(queue, bucket)
  if call('HSET', key, sender, pack('<I6', last) .. letters) == 1 then call('PEXPIRE', key, 3 * BUCKET_MS) end
end
