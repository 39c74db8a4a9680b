-- Settling: what a receiver says has become of messages that it holds.

-- What every settling command begins with: the state and the session, or nil and a refusal.
function begin_settling(queue, argv, now, from)
  local bad = bad_triples(argv, from, #argv)
  if bad then return nil, bad end
  local s, id, outside = kept_state(queue), argv[1], in_no_session(argv[1], argv[2])
  if not s then
    local run, gone = 'r' .. (argv[from] or ''), argv[from] and names_of(queue, segment_of(argv[from + 1])).gone
    if outside then s = load_state(queue, run, gone) else s = load_state(queue, run, gone, 's' .. id) end
  end
  if outside then return s, nil end
  local its, no = held_session(s, now, id, argv[2])
  if no then return nil, no end
  return s, its
end

function complete(s, run, first, last)
  local bytes = unlock(s, run, first, last)
  remove(s, segment_of(first), first, last, bytes)
end

-- Refuses what would make a message unreadable: changes are '' or one AMQP map (AMQP 1.0 §1.6.23, map8 or map32).
function bad_changes(changes)
  local kind, size = byte(changes or 'x'), nil
  if kind == 193 then size = #changes >= 3 and byte(changes, 2) + 2 end
  if kind == 209 then size = #changes >= 9 and unpack_struct('>I4', changes, 2) + 5 end
  if changes == '' or size == #(changes or '') then return nil end
  return refusal('BADCALL', 'changes are an AMQP map of application properties')
end

-- Adds changes to messages first..last, which nobody holds any more.
local function change(s, first, last, changes)
  if changes == '' then return end
  local bodies = bodies_of(s.queue, segment_of(first), first, last)
  for i = 1, #bodies do rewrite(s, first + i - 1, changed(bodies[i], changes), #bodies[i]) end
end

function abandon(s, run, first, last, its, counted, changes)
  local deliveries = counted and run.deliveries or run.deliveries - 1
  unlock(s, run, first, last)
  change(s, first, last, changes)
  give_back(s, first, last, deliveries, run.was_deferred, its, counted)
end

function put_aside(s, run, first, last, changes)
  unlock(s, run, first, last)
  change(s, first, last, changes)
  defer(s, first, last, run.deliveries)
end

function put_away(s, run, first, last, changes)
  unlock(s, run, first, last)
  dead_letter(s, first, last, run.deliveries, changes)
end

function no_dead_letters(queue)
  if sub(queue, -17) ~= '/$DeadLetterQueue' then return nil end
  return refusal('NOTFOUND', 'a dead-letter queue has no dead-letter queue of its own')
end
