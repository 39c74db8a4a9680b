-- Segments: where bodies live. Message n of a queue is element (n-1) % 256 of the list `<queue>:seg:<(n-1) / 256>`,
-- so a place is found by arithmetic, a batch is stored by one RPUSH and read by one LRANGE, at any depth.
--
-- `<queue>:sizes:<segment>` holds the bytes of each message, u32, so that bodies need not be read to be counted: whatever
-- enters Lua is copied and hashed, a microsecond a kilobyte.
-- `<queue>:times:<segment>` holds the enqueued times as marks of 8 bytes, u16 index and u48 milliseconds (little-endian):
-- a mark is valid from its index up to the next mark. `<queue>:expiry:<segment>` holds expiries alike, where there are any;
-- 0 is never.

function segment_of(sequence)
  return floor((sequence - 1) / SEGMENT)
end

-- The names of a segment's keys, and of the state field that says what has gone from it, made once for a while: to write a
-- number costs as much as a call.
local NAMES_KEPT = 16
local kept = {}

function names_of(queue, segment)
  local names = kept[segment % NAMES_KEPT]
  if names and names.segment == segment and names.queue == queue then return names end
  names = {
    segment = segment, queue = queue, list = queue .. ':seg:' .. segment, sizes = queue .. ':sizes:' .. segment,
    times = queue .. ':times:' .. segment, expiry = queue .. ':expiry:' .. segment, gone = 'g' .. segment,
  }
  kept[segment % NAMES_KEPT] = names
  return names
end

-- Notes the expiries (0: never) of messages from..to of a list that begins at `place` of the tail's segment.
local function mark_expiries(s, segment, place, expiries, from, to)
  local marks, least = {}, NEVER
  for i = from, to do
    local at = expiries and expiries[i] or 0
    if at ~= s.expiry_mark then
      marks[#marks + 1] = pack('<I2I6', place + i - from, at)
      s.expiry_mark = at
      if at > 0 then least = min(least, at) end
    end
  end
  if #marks == 0 then return end
  local key = names_of(s.queue, segment).expiry
  if s.expiring == 0 then
    s.expiring, s.timed = 1, s.timed + 1
    if unpack_struct('<I2', marks[1]) > 0 then table.insert(marks, 1, pack('<I2I6', 0, 0)) end
  end
  call('APPEND', key, table.concat(marks))
  if least < NEVER then add_due_sooner(s, 'x' .. segment, least) end
end

local FORMATS = {} -- n → a struct of n sizes

local function format_of(n)
  FORMATS[n] = FORMATS[n] or '<' .. rep('I4', n)
  return FORMATS[n]
end

-- Packed sizes as a table (which has one number more).
function sizes_each(sizes)
  return { unpack_struct(format_of(#sizes / 4), sizes) }
end

-- The sum of packed sizes: eight, four, two at a time without a table of them.
function sum_of(sizes)
  local sum, at, size = 0, 1, #sizes
  while at + 31 <= size do
    local a, b, c, d, e, f, g, h = unpack_struct('<I4I4I4I4I4I4I4I4', sizes, at)
    sum, at = sum + a + b + c + d + e + f + g + h, at + 32
  end
  if at + 15 <= size then
    local a, b, c, d = unpack_struct('<I4I4I4I4', sizes, at)
    sum, at = sum + a + b + c + d, at + 16
  end
  if at + 7 <= size then
    local a, b = unpack_struct('<I4I4', sizes, at)
    sum, at = sum + a + b, at + 8
  end
  if at < size then sum = sum + unpack_struct('<I4', sizes, at) end
  return sum
end

-- The packed sizes of messages first..last of one segment.
function sizes_of(queue, segment, first, last)
  local base = segment * SEGMENT + 1
  return call('GETRANGE', names_of(queue, segment).sizes, digits_of((first - base) * 4), digits_of((last - base) * 4 + 3))
end

function bytes_of(queue, segment, first, last)
  return sum_of(sizes_of(queue, segment, first, last))
end

-- Notes that messages from..to of a list, of `bytes` in all and enqueued at `at`, stand at `place` of the tail's segment.
local function note(s, segment, place, at, sizes, bytes, expiries, from, to)
  local queue = s.queue
  if place == 0 then
    call('ZADD', queue .. ':segments', segment, segment)
    s.expiry_mark, s.expiring = 0, 0
  end
  if place == 0 or s.marked ~= at then
    call(place == 0 and 'SET' or 'APPEND', names_of(queue, segment).times, pack('<I2I6', place, at))
    s.marked, s.times[segment] = at, nil
  end
  call('SETRANGE', names_of(queue, segment).sizes, digits_of(place * 4), sizes)
  if expiries or s.expiry_mark ~= 0 then mark_expiries(s, segment, place, expiries, from, to) end
  local count = to - from + 1
  s.bytes, s.messages, s.tail = s.bytes + bytes, s.messages + count, s.tail + count
end

-- Leaves a segment's list as it was before somebody's bodies came to it that no call has taken in.
local function clear_away(s, segment, place)
  local key = names_of(s.queue, segment).list
  if place == 0 then call('UNLINK', key) else call('LTRIM', key, 0, place - 1) end
end

-- Appends list[from..to] behind the tail, enqueued at `at`; `expiries` where any of them has one.
function append(s, at, list, from, to, expiries)
  local i = from
  while i <= to do
    local place = s.tail % SEGMENT
    local segment = (s.tail - place) / SEGMENT
    local last = min(to, i + SEGMENT - place - 1)
    local key, bytes, sizes, length = names_of(s.queue, segment).list, #list[i], nil, nil
    if i == last then
      sizes = pack('<I4', bytes)
      length = call('RPUSH', key, list[i])
    else
      local each = { bytes }
      for j = i + 1, last do
        local size = #list[j]
        each[j - i + 1], bytes = size, bytes + size
      end
      sizes = pack(format_of(last - i + 1), unpack(each))
      length = call('RPUSH', key, unpack(list, i, last))
    end
    if length ~= place + last - i + 1 then
      clear_away(s, segment, place)
      call('RPUSH', key, unpack(list, i, last))
    end
    note(s, segment, place, at, sizes, bytes, expiries, i, last)
    i = last + 1
  end
end

-- Calls part(segment, place, from, to) for the pieces that `count` messages behind `tail` fall into.
local function each_piece(tail, count, part)
  local from = 1
  while from <= count do
    local place = (tail + from - 1) % SEGMENT
    local to = min(count, from + SEGMENT - place - 1)
    if part((tail + from - 1 - place) / SEGMENT, place, from, to) == false then return false end
    from = to + 1
  end
  return true
end

-- The same where nothing is known of the queue but that this library must not touch it.
function take_off_blindly(queue, guess, count)
  each_piece(guess, count, function(segment, _, from, to) call('RPOP', names_of(queue, segment).list, to - from + 1) end)
end

-- Takes `count` bodies off again that were pushed as if the tail were `guess`, and whatever else does not belong there;
-- returns them.
function take_off(s, guess, count)
  local list = {}
  each_piece(guess, count, function(segment, _, from, to)
    local bodies = call('RPOP', names_of(s.queue, segment).list, to - from + 1) or EMPTY
    for i = #bodies, 1, -1 do list[#list + 1] = bodies[i] end
    local place, stays = s.tail % SEGMENT, 0
    if segment == (s.tail - place) / SEGMENT then
      stays = place
    elseif segment * SEGMENT < s.tail and call('ZSCORE', s.queue .. ':segments', segment) then
      stays = SEGMENT
    end
    clear_away(s, segment, stays)
  end)
  return list
end

-- Takes in `count` bodies that the same transaction has pushed to the segments' lists, past Lua, as if the tail were `guess`;
-- `sizes` are theirs, `bytes` their sum, `expiries` where any of them has one. Where they are not where the tail is they are
-- returned.
function append_pushed(s, at, guess, count, sizes, bytes, expiries)
  local place = guess % SEGMENT
  if guess == s.tail and place + count <= SEGMENT then -- all in one segment, as most are
    local segment = (guess - place) / SEGMENT
    if call('LLEN', names_of(s.queue, segment).list) ~= place + count then return take_off(s, guess, count) end
    note(s, segment, place, at, sizes, bytes, expiries, 1, count)
    return
  end
  local in_place = guess == s.tail and each_piece(guess, count, function(segment, place, from, to)
    return call('LLEN', names_of(s.queue, segment).list) == place + to - from + 1
  end)
  if not in_place then return take_off(s, guess, count) end
  each_piece(guess, count, function(segment, start, from, to)
    local its = sub(sizes, from * 4 - 3, to * 4)
    note(s, segment, start, at, its, sum_of(its), expiries, from, to)
  end)
end

-- Those of a segment's marks that cover messages first..last.
local function marks_among(marks, segment, first, last)
  if #marks == 8 then return marks end
  local from, to = first - segment * SEGMENT - 1, last - segment * SEGMENT - 1
  if #marks > 8 and unpack_struct('<I2', marks, #marks - 7) <= from then return sub(marks, -8) end
  local low, high = 0, #marks / 8 - 1
  while low < high do -- the last mark at or before `from`
    local middle = floor((low + high + 1) / 2)
    if unpack_struct('<I2', marks, middle * 8 + 1) <= from then low = middle else high = middle - 1 end
  end
  local stop = low + 1
  while stop * 8 < #marks and unpack_struct('<I2', marks, stop * 8 + 1) <= to do stop = stop + 1 end
  return sub(marks, low * 8 + 1, stop * 8)
end

-- The expiries of messages first..last of one segment, as marks.
function expiry_marks_of(s, segment, first, last)
  return marks_among(call('GET', names_of(s.queue, segment).expiry) or '', segment, first, last)
end

-- Their enqueued times. All those of a segment are kept with the state: it is read again and again.
function times_of(s, segment, first, last)
  local marks = s.times[segment]
  if not marks then
    marks = call('GET', names_of(s.queue, segment).times) or ''
    s.times[segment] = marks
  end
  return marks_among(marks, segment, first, last)
end

-- Calls part(first, last, value) for the parts of first..last that have one mark.
function each_mark(marks, segment, first, last, part)
  local base = segment * SEGMENT + 1
  for at = 1, #marks, 8 do
    local index, value = unpack_struct('<I2I6', marks, at)
    local from = max(first, base + index)
    local to = at + 8 <= #marks and min(last, base + unpack_struct('<I2', marks, at + 8) - 1) or last
    if from <= to then part(from, to, value) end
  end
end

function bodies_of(queue, segment, first, last)
  local base = segment * SEGMENT + 1
  if first == last then return { call('LINDEX', names_of(queue, segment).list, digits_of(first - base)) } end
  return call('LRANGE', names_of(queue, segment).list, digits_of(first - base), digits_of(last - base))
end

-- How many messages make up about `bytes`, by the mean size of what is stored.
function messages_in(s, bytes)
  return max(1, floor(bytes / max(1, s.bytes / max(1, s.messages))))
end
