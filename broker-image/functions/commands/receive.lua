-- pq_receive: hands out the next messages in order, under a lock or for good.
-- KEYS   queue
-- ARGV   messages at most (1..1000), lock duration in ms (-1: the queue's; 0: receive-and-delete), bytes at most (0: 4 MB; the
--        first message comes whatever its size), session and the number of its lock ('' and 0 outside of a session), and
--        'places' where the caller fetches the bodies itself, past Lua (not with receive-and-delete)
-- REPLY  {now in ms, locked until in ms (0: deleted), ask again, run, run, ...}
--        run = {number of the lock, first sequence number, delivery count, enqueued-time marks, {message, message, ...}}
--        with 'places' one text, little-endian, as lists in lists cost more to hand over: now, locked until, ask again (i64
--        each), then for each run its lock, first (u64), delivery count, messages, bytes of marks (u32), and the marks. LRANGE
--        gives the messages for as long as the lock lasts
--        ask again: the time (ms) from which asking again is worthwhile without being woken; not after now: at once, this
--        call did a bounded part; -1: nothing waits for its time
-- ERROR  DISABLED · SESSIONREQUIRED  the queue has sessions · NOSESSIONS  it has none · SESSIONLOCKLOST
--        LOCKSFULL  receivers hold more locks than there is room for
local RECEIVE_BYTES = 4194304 -- a reply ends with what reaches it: some ten milliseconds' work
local ANSWER, PLACE = '<i8i8i8', '<I8I8I4I4I4'
local RUN_BYTES = 1048576 -- a run of more is cut, so that whatever becomes of it is not much work at once

local function place(id, first, deliveries, count, times)
  return pack(PLACE, id, first, deliveries, count, #times) .. times
end

-- Messages that were taken and are not handed out after all.
local function put_back(s, first, last, deliveries, its)
  if its then
    add_back(its, first, last, deliveries)
  elseif last == s.head and deliveries == 0 then
    s.head = first - 1
  else
    return_run(s, first, last - first + 1, deliveries, '')
  end
end

-- Hands out messages first..last of one segment, in runs, as far as they fit into `room` bytes; returns how many, and their
-- bytes. `first_ever`: the first comes whatever its size.
local function hand_out(s, reply, first, last, deliveries, lock_ms, until_ms, its, room, first_ever, by_place)
  local segment = segment_of(first)
  local bodies = not by_place and bodies_of(s.queue, segment, first, last)
  local sizes = by_place and sizes_of(s.queue, segment, first, last)
  local all = last - first + 1
  if sizes then
    local sum = sum_of(sizes)
    if sum <= room and sum < RUN_BYTES then -- all of it is one run, as most are
      local id = lock(s, first, last, deliveries + 1, sum, until_ms, its)
      reply[#reply + 1] = place(id, first, deliveries + 1, all, times_of(s, segment, first, last))
      return all, sum
    end
    sizes = sizes_each(sizes)
  end
  local count, total = all, 0
  for i = 1, all do
    local size = sizes and sizes[i] or #bodies[i]
    total = total + size
    if total > room and not (first_ever and i == 1) then
      count, total = i - 1, total - size
      s.more = true
      put_back(s, first + count, last, deliveries, its)
      break
    end
  end
  local bytes, from = 0, 1
  for i = 1, count do
    bytes = bytes + (sizes and sizes[i] or #bodies[i])
    if bytes >= RUN_BYTES or i == count then
      local part, start, stop, id = bodies, first + from - 1, first + i - 1, 0
      if not by_place and (from > 1 or i < all) then part = { unpack(bodies, from, i) } end
      local times = times_of(s, segment, start, stop) -- before it may go
      if lock_ms > 0 then
        id = lock(s, start, stop, deliveries + 1, bytes, until_ms, its)
      else
        remove(s, segment, start, stop, bytes)
      end
      reply[#reply + 1] = by_place and place(id, start, deliveries + 1, i - from + 1, times)
        or { id, start, deliveries + 1, times, part }
      bytes, from = 0, i + 1
    end
  end
  return count, total
end

command('pq_receive', function(queue, argv)
  local most, lock_ms, bytes_most = whole(argv[1], 1, 1000), whole(argv[2], -1, 300000), whole(argv[3], 0, 2 ^ 40)
  local by_place = argv[6] == 'places'
  if not most or not lock_ms or not bytes_most or not argv[5] or (by_place and lock_ms == 0) then
    return refusal('BADCALL', 'pq_receive takes 1..1000 messages, -1..300000 ms, bytes, session and session lock')
  end
  local now, id = now_ms(), argv[4]
  local s = kept_state(queue) or in_no_session(id, argv[5]) and load_state(queue) or load_state(queue, 's' .. id)
  sweep(s, now)
  s.work = 0 -- what is handed out has a share of its own: much that is due keeps nobody waiting
  give_back_lapsed(s, now)
  local its, no = session_to_receive_from(s, now, id, argv[5])
  lock_ms = lock_duration(s, lock_ms)
  no = no or (lock_ms > 0 and (locks_full(s) or (its and holds_too_many(s, its))))
  if no then
    save(s)
    return no
  end
  local until_ms = lock_ms > 0 and (its and its.until_ms or now + lock_ms) or 0
  if bytes_most == 0 or bytes_most > RECEIVE_BYTES then bytes_most = RECEIVE_BYTES end
  local reply, received, sum = { now, until_ms, 0 }, 0, 0
  while received < most do
    local step = most - received
    if step > 16 then step = min(step, messages_in(s, bytes_most - sum)) end
    local first, last, deliveries
    if its then
      first, last, deliveries = take_from_session(s, its, now, step)
    else
      first, last, deliveries = take(s, now, step)
    end
    if not first then break end
    local count, bytes = hand_out(s, reply, first, last, deliveries, lock_ms, until_ms, its, bytes_most - sum, received == 0,
      by_place)
    received, sum = received + count, sum + bytes
    if first + count <= last then break end
  end
  tidy(s)
  reply[3] = ask_again(s, now)
  save(s)
  if not by_place then return reply end
  return pack(ANSWER, now, until_ms, reply[3]) .. table.concat(reply, '', 4)
end, FREES)
