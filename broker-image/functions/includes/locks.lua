-- Peek-lock: a run that a receiver holds until a time.

local RUNS_SWEPT = 256 -- expired runs that one call gives back: about two milliseconds' work

-- Locks messages first..last until `until_ms`; returns the run.
local function lock(state, first, last, deliveries, bytes, until_ms)
  local run = new_run(state, first, last - first + 1, deliveries, bytes)
  run.until_ms = until_ms
  put_run(state, run)
  put(state, 'locked', number(state, 'locked') + run.count)
  call('ZADD', state.queue .. ':due', text(until_ms), run.id)
  local due = next_due[state.queue]
  if due and until_ms < due then next_due[state.queue] = until_ms end
  return run
end

local function renewed_name(run, sequence)
  return run.id .. ':' .. text(sequence)
end

-- The run under whose lock all of first..last are held now, or nil: expired, settled, given back, or never locked.
local function locked_run(state, now, id, first, last)
  local run = run_of(state, id)
  if not run or run.until_ms == 0 or first < run.first or last >= run.first + run.count or first > last then return nil end
  if not run.renewed and run.until_ms <= now then return nil end
  for sequence = first, last do
    if not holds(run, sequence - run.first) then return nil end
    if run.renewed then
      local until_ms = call('ZSCORE', state.queue .. ':renewed', renewed_name(run, sequence)) or run.until_ms
      if tonumber(until_ms) <= now then return nil end
    end
  end
  return run
end

-- Takes first..last out of a receiver's hands; returns their bytes. The caller says where they go.
local function unlock(state, run, first, last)
  local whole_run = run.held == '' and last - first + 1 == run.count
  local bytes = whole_run and run.bytes or bytes_of(state.queue, segment_of(first), first, last)
  if run.renewed then
    for sequence = first, last do call('ZREM', state.queue .. ':renewed', renewed_name(run, sequence)) end
  end
  shrink(state, run, first, last, bytes)
  if run.count == 0 then call('ZREM', state.queue .. ':due', run.id) end
  put(state, 'locked', number(state, 'locked') - (last - first + 1))
  return bytes
end

-- Renews first..last of a run. Where it is not the whole run, each message has its own lock, never a shorter one.
local function renew(state, run, first, last, until_ms)
  if run.held == '' and not run.renewed and last - first + 1 == run.count then
    run.until_ms = until_ms
    call('ZADD', state.queue .. ':due', text(until_ms), run.id)
    next_due[state.queue] = min(next_due[state.queue] or 0, until_ms) -- it may be sooner than it was
  else
    run.renewed = true
    local longer = text(max(until_ms, run.until_ms))
    for sequence = first, last do
      call('ZADD', state.queue .. ':renewed', 'GT', longer, renewed_name(run, sequence))
    end
  end
  put_run(state, run)
end

-- A run whose time has come: what was renewed beyond now stays with its receiver, the rest goes back to its old place.
local function expire(state, run, now)
  local returned = run.held == '' and full_bits(run.count) or run.held
  local kept_until
  if run.renewed then
    local kept = rep('\0', #returned)
    for i = 0, run.count - 1 do
      local name = renewed_name(run, run.first + i)
      local until_ms = bit_is_set(returned, i) and tonumber(call('ZSCORE', state.queue .. ':renewed', name) or 0) or 0
      if until_ms > now then
        returned = change_bits(returned, i, i, false)
        kept = change_bits(kept, i, i, true)
        kept_until = min(kept_until or until_ms, until_ms)
      elseif until_ms > 0 then
        call('ZREM', state.queue .. ':renewed', name)
      end
    end
    run.held = kept
  end
  local back = { count = run.count, held = returned }
  local count = held_count(back)
  if count > 0 then give_back(state, run.first, run.count, run.deliveries, count < run.count and returned or '') end
  put(state, 'locked', number(state, 'locked') - count)
  if kept_until then
    run.until_ms = kept_until
    put_run(state, run)
    call('ZADD', state.queue .. ':due', text(kept_until), run.id)
  else
    drop(state, 'r' .. run.id)
    call('ZREM', state.queue .. ':due', run.id)
  end
end

-- Gives back what has expired, at most RUNS_SWEPT a call, so that no call is long however much is due at once.
local function sweep(state, now)
  local due = next_due[state.queue]
  if due and now < due then return end
  local ids = call('ZRANGE', state.queue .. ':due', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, RUNS_SWEPT)
  for i = 1, #ids do expire(state, run_of(state, ids[i]), now) end
  local lowest = call('ZRANGE', state.queue .. ':due', 0, 0, 'WITHSCORES')
  next_due[state.queue] = lowest[2] and tonumber(lowest[2]) or math.huge
end

local SETTLEMENTS_MOST = 1000 -- also limits.SETTLEMENTS_MAX: Redis does not roll back, so what is too much is refused first

-- A refusal where ARGV[from..] are no triples of whole numbers, or too many; nothing has been done by then.
local function bad_triples(argv, from)
  local count = #argv - from + 1
  if count % 3 == 0 and count <= 3 * SETTLEMENTS_MOST then
    local good = true
    for i = from, #argv do good = good and whole(argv[i], -2 ^ 52, 2 ^ 52) end
    if good then return nil end
  end
  return refusal('BADCALL', 'settlements are up to ' .. SETTLEMENTS_MOST .. ' triples of run, first and last')
end

-- Walks ARGV[from..] as triples run, first, last; `settle(run, first, last)` is called for each that is held.
-- Returns the places (0-based) of the triples that were refused, each of them whole.
local function each_lock(state, now, argv, from, settle)
  local refused = {}
  for i = from, #argv, 3 do
    local first, last = whole(argv[i + 1], 1, 2 ^ 48), whole(argv[i + 2], 1, 2 ^ 48)
    local run = first and last and locked_run(state, now, argv[i], first, last)
    if run then settle(run, first, last) else refused[#refused + 1] = (i - from) / 3 end
  end
  return refused
end
