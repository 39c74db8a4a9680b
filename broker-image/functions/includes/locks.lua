-- Peek-lock: a run that a receiver holds until a time, or in a session for as long as it holds that.
-- Locks that expire in the order in which they were given need no index: `swept` walks behind them. Others are in
-- `<queue>:due`.

local RUNS_WALKED = 1024 -- runs that one call looks at, most of them settled long ago
local RUNS_READ = 64
local LOCK_RESERVE = 67108864 -- bytes beyond the quota that locks may take

-- Locks messages first..last until `until_ms`, or in a session; returns the run's number.
function lock(s, first, last, deliveries, bytes, until_ms, its, was_deferred)
  local id, kinds = s.run + 1, was_deferred and WAS_DEFERRED or 0
  s.run, s.runs, s.locked = id, s.runs + 1, s.locked + last - first + 1
  if its then
    hold_in_session(s, its, id)
    until_ms, kinds = its.lock, kinds + IN_SESSION
  else
    if until_ms >= s.fifo_until then
      s.fifo_until = until_ms
    else
      kinds = kinds + INDEXED
      call('ZADD', s.queue .. ':due', text(until_ms), id)
    end
    if until_ms < s.due then s.due = until_ms end
  end
  put(s, 'r' .. id, pack(RUN, until_ms, first, last - first + 1, min(deliveries, 65535), bytes, kinds))
  return id
end

function locks_full(s)
  if s.config.quota_bytes == 0 or charge_of(s) <= s.config.quota_bytes + LOCK_RESERVE then return nil end
  return refusal('LOCKSFULL', 'the partition is full, and receivers hold more locks than it has room for: settle some first')
end

local function renewed_name(run, sequence)
  return run.id .. ':' .. text(sequence)
end

-- The run under whose lock all of first..last are held now, or nil: expired, settled, given back, or never locked. `its` is
-- the session that the caller holds.
function locked_run(s, now, id, first, last, its)
  local run = run_of(s, id)
  if not run or run.until_ms == 0 or first < run.first or last >= run.first + run.count or first > last then return nil end
  if run.in_session then
    if not its or its.lock ~= run.until_ms then return nil end
  elseif its or (not run.renewed and run.until_ms <= now) then
    return nil
  end
  if run.held == '' and not run.renewed then return run end
  for sequence = first, last do
    if not holds(run, sequence - run.first) then return nil end
    if run.renewed then
      local until_ms = call('ZSCORE', s.queue .. ':renewed', renewed_name(run, sequence)) or run.until_ms
      if tonumber(until_ms) <= now then return nil end
    end
  end
  return run
end

-- Takes first..last out of a receiver's hands; returns their bytes. The caller says where they go.
function unlock(s, run, first, last)
  local whole_run = run.held == '' and last - first + 1 == run.count
  local bytes = whole_run and run.bytes or bytes_of(s.queue, segment_of(first), first, last)
  if run.renewed then
    for sequence = first, last do call('ZREM', s.queue .. ':renewed', renewed_name(run, sequence)) end
  end
  shrink(s, run, first, last, bytes)
  if run.count == 0 and run.indexed then not_due(s, run.id) end
  s.locked = s.locked - (last - first + 1)
  return bytes
end

-- Renews first..last of a run. Where it is not the whole run, each message has its own lock, never a shorter one.
function renew(s, run, first, last, until_ms)
  if run.held == '' and not run.renewed and last - first + 1 == run.count then
    run.until_ms = until_ms
  else
    run.renewed = true
    local longer = text(max(until_ms, run.until_ms))
    for sequence = first, last do
      call('ZADD', s.queue .. ':renewed', 'GT', longer, renewed_name(run, sequence))
    end
  end
  run.indexed = true
  add_due(s, run.id, run.until_ms)
  put_run(s, run)
end

-- A run whose time has come: what was renewed beyond now stays with its receiver, the rest goes back to its old place.
function expire_lock(s, run, now)
  local returned = run.held == '' and full_bits(run.count) or run.held
  local kept_until
  if run.renewed then
    s.work = s.work + 0.15 * run.count
    local kept = rep('\0', #returned)
    for i = 0, run.count - 1 do
      local name = renewed_name(run, run.first + i)
      local until_ms = bit_is_set(returned, i) and tonumber(call('ZSCORE', s.queue .. ':renewed', name) or 0) or 0
      if until_ms > now then
        returned = change_bits(returned, i, i, false)
        kept = change_bits(kept, i, i, true)
        kept_until = min(kept_until or until_ms, until_ms)
      elseif until_ms > 0 then
        call('ZREM', s.queue .. ':renewed', name)
      end
    end
    run.held = kept
  end
  each_stretch({ first = run.first, count = run.count, held = returned }, function(first, last)
    s.locked = s.locked - (last - first + 1)
    give_back(s, first, last, run.deliveries, run.was_deferred, nil, true)
  end)
  if kept_until then
    run.until_ms, run.indexed = kept_until, true
    put_run(s, run)
    call('ZADD', s.queue .. ':due', text(kept_until), run.id)
  else
    if run.indexed then not_due(s, run.id) end
    drop_run(s, run)
  end
end

-- Walks on behind the locks that expire in order; returns when the next of them does, NEVER where there is none.
function walk(s, now)
  if s.locked == 0 then s.swept = s.run end
  local stop = s.swept + RUNS_WALKED
  while s.swept < s.run do
    if s.swept >= stop or s.work >= WORK_A_CALL then return now end
    local names, from = {}, s.swept
    for id = from + 1, min(from + RUNS_READ, s.run) do names[#names + 1] = 'r' .. id end
    local records = call('HMGET', s.queue, unpack(names))
    for i = 1, #names do
      if s.work >= WORK_A_CALL then return now end
      local record = s.value[names[i]]
      if record == nil then record = records[i] end
      if record then
        local run = run_from(from + i, record)
        if run.until_ms > 0 and not run.in_session and not run.indexed then
          if run.until_ms > now then return run.until_ms end
          s.value[names[i]] = record
          expire_lock(s, run, now)
        end
      end
      s.swept = from + i
    end
  end
  return NEVER
end

local SETTLEMENTS_MOST = 1000 -- also limits.SETTLEMENTS_MAX: Redis does not roll back, so what is too much is refused first

-- Refuses what is no list of triples before anything is done; their first and last are numbers afterwards.
function bad_triples(argv, from, to)
  local n = to - from + 1
  if n == 3 then -- one, as most are
    local run, first, last = tonumber(argv[from]), tonumber(argv[from + 1]), tonumber(argv[to])
    if run and first and last and run % 1 + first % 1 + last % 1 == 0 then
      argv[from + 1], argv[to] = first, last
      return nil
    end
  elseif n % 3 ~= 0 or n > 3 * SETTLEMENTS_MOST then
    return refusal('BADCALL', 'settlements are up to ' .. SETTLEMENTS_MOST .. ' triples of run, first and last')
  end
  local before, number
  for i = from, to do
    local word = argv[i]
    if word ~= before then
      before, number = word, tonumber(word)
      if not number or number % 1 ~= 0 then
        return refusal('BADCALL', "'" .. word .. "' is no run and no sequence number")
      end
    end
    if (i - from) % 3 > 0 then argv[i] = number end
  end
end

-- Calls settle(run, first, last) for each triple (run, first, last in argv[from..to]) whose messages are all held under their
-- lock; returns the places (0-based) of the triples that were refused, each of them whole.
function each_lock(s, now, argv, from, to, its, settle)
  local refused = {}
  for i = from, to, 3 do
    local first, last = argv[i + 1], argv[i + 2]
    local run = locked_run(s, now, argv[i], first, last, its)
    if run then settle(run, first, last) else refused[#refused + 1] = (i - from) / 3 end
  end
  return refused
end
