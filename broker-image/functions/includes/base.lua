-- What every command needs: the server's calls, its clock, and numbers written so that none is rounded.
-- While a library loads on Redis 7.0 neither redis.call nor the globals exist: `bind` fetches them at the first call.
--
-- What costs here, in the server's time: a call of Redis 0.3 us and more, of which a number among its arguments is 0.2 (it is
-- written out and read again; a text is not); a number joined to a text 0.2 to 0.4; a table 0.05, and as much again for each
-- field that it grows by; a string 0.05, and 1.3 a kilobyte.

call, floor, min, max, pack, unpack_struct, byte, char, sub, rep = nil
SEGMENT = 256 -- messages in one segment; a constant of the layout, also in partitionedqueue.model.limits
NEVER = 2 ^ 48 - 1
EMPTY = {}

local function bind()
  call = redis.call
  floor, min, max = math.floor, math.min, math.max
  byte, char, sub, rep = string.byte, string.char, string.sub, string.rep
  pack, unpack_struct = struct.pack, struct.unpack
end

FREES = { 'allow-oom' } -- commands that may run when the broker is full
READS = { 'no-writes' }
reading = false -- whether the command at work may write

function command(name, body, flags)
  redis.register_function{
    function_name = name,
    callback = function(keys, argv)
      if not call then bind() end
      reading = flags == READS
      begin_command()
      return body(keys[1], argv)
    end,
    flags = flags or EMPTY,
  }
end

-- Milliseconds since 1970 by the server's clock, the only clock that a promise is measured with.
function now_ms()
  local t = call('TIME')
  return t[1] * 1000 + floor(t[2] / 1000)
end

-- Lua's own tostring keeps 14 digits, enough for a run or a segment; a time or a sequence number may have 15.
function text(number)
  return string.format('%.0f', number)
end

function refusal(code, words)
  return redis.error_reply(code .. ' ' .. words)
end

-- The numbers 0, 1, ... as Redis wants them.
local digits = {}

function digits_of(number)
  local written = digits[number]
  if not written then
    written = text(number)
    if number < 4 * SEGMENT + 4 then digits[number] = written end
  end
  return written
end

local NUMBERS_KEPT = 64
local numbers, count = {}, 0 -- texts that have come as arguments lately, and what they are: most are few and the same again

-- A whole number from ARGV within bounds, or nil.
function whole(value, lowest, highest)
  local number = numbers[value or '']
  if not number then
    number = tonumber(value)
    if not number or number % 1 ~= 0 then return nil end
    if count == NUMBERS_KEPT then numbers, count = {}, 0 end
    numbers[value], count = number, count + 1
  end
  if number < lowest or number > highest then return nil end
  return number
end
