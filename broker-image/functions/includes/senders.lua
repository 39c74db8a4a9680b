-- Senders: a send whose reply was lost may be sent again, and is carried out once. A sender (one connection's worth of sends
-- to one queue in one partition) numbers its sends; `n<sender>` has the last number, when that was, and for it and the 63
-- before it a letter: `s` stored, `-` not. It is kept for half an hour after its last send.

local SENDS_REMEMBERED = 64
SENDER_KEPT_MS = 1800000

-- What is known of a sender: last number, letters.
function sender_of(s, sender)
  local record = get(s, 'n' .. sender)
  if not record then return 0, '' end
  local last = unpack_struct('<I6', record)
  return last, sub(record, 13)
end

-- 'stored', 'new', or 'forgotten' where the number is too old to tell.
function outcome_of(last, letters, sent)
  if sent > last then return 'new' end
  if last - sent >= #letters then return 'forgotten' end
  return byte(letters, #letters - (last - sent)) == 115 and 'stored' or 'new'
end

function remember_send(s, now, sender, last, letters, sent)
  if last == 0 then add_due(s, 'n' .. sender, now + SENDER_KEPT_MS) end
  if sent > last then
    letters = sub(letters .. rep('-', min(sent - last - 1, SENDS_REMEMBERED)) .. 's', -SENDS_REMEMBERED)
    last = sent
  else
    local place = #letters - (last - sent)
    letters = sub(letters, 1, place - 1) .. 's' .. sub(letters, place + 1)
  end
  put(s, 'n' .. sender, pack('<I6I6', last, now) .. letters)
end

-- Its time has come: forgotten, unless it has sent since.
function forget_sender(s, now, sender)
  local record = get(s, 'n' .. sender)
  local _, used = unpack_struct('<I6I6', record or pack('<I6I6', 0, 0))
  if used + SENDER_KEPT_MS > now then return add_due(s, 'n' .. sender, used + SENDER_KEPT_MS) end
  if record then drop(s, 'n' .. sender) end
  not_due(s, 'n' .. sender)
end
