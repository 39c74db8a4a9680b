-- Claim logs: how a reader that replays (Spark) consumes a queue that does not. A group claims ready messages into its log;
-- a position is the dense ordinal in that log, so reading [a, b) again gives the same messages. Acknowledging up to a
-- position takes them out of the queue. Claims are held under a lease that the group's owner renews; when it has lapsed,
-- another consumer's receive or claim may give them back, and then the group has lost them.
--
-- `<queue>:group:<group>`  owner, lease (expiry, ms), base (first ordinal in the log), next (one past the last),
--                          lost (ordinals below it that were not acknowledged by then were given back)
-- `<queue>:log:<group>`    a list of entries: first u64, count u32, deliveries before the claim u32
-- `<queue>:groups`         groups that hold claims, by lease
-- `<queue>:claimed:<group>` where the queue has sessions, those that the group holds, by the ordinal behind their last message
--                          in the log. Nobody else may accept them until that has been acknowledged or given back.

LOG_ENTRY = '<I8I4I4'
RUNS_A_CALL = 64 -- segments or runs that one claim, acknowledgement or giving back touches

local function group_key(queue, group) return queue .. ':group:' .. group end
function log_key(queue, group) return queue .. ':log:' .. group end
local function sessions_key(queue, group) return queue .. ':claimed:' .. group end

function group_of(queue, name)
  check_layout(queue)
  local h = call('HMGET', group_key(queue, name), 'owner', 'lease', 'base', 'next', 'lost')
  return {
    name = name, owner = h[1] or '', lease = tonumber(h[2] or 0), base = tonumber(h[3] or 0),
    next = tonumber(h[4] or 0), lost = tonumber(h[5] or 0),
  }
end

function put_group(queue, group)
  call('HSET', group_key(queue, group.name), 'owner', group.owner, 'lease', text(group.lease), 'base', text(group.base),
    'next', text(group.next), 'lost', text(group.lost))
  if group.next > group.base then
    call('ZADD', queue .. ':groups', text(group.lease), group.name)
  else
    call('ZREM', queue .. ':groups', group.name)
  end
end

function fenced(group, owner)
  if group.owner == owner and owner ~= '' then return nil end
  if group.owner == '' and group.lost > 0 then
    return refusal('CLAIMLOST', 'the lease of group ' .. group.name .. ' lapsed, and its claims were given back')
  end
  if group.owner == '' then
    return refusal('CLAIMAHEAD', 'group ' .. group.name .. ' has no claim log here; the data is older than its reader')
  end
  return refusal('CLAIMFENCED', 'group ' .. group.name .. ' has another owner')
end

-- Takes up to `most` messages off the front of a log, piece by piece within segments: part(first, last, deliveries).
-- Returns how many. Whole pieces only up to RUNS_A_CALL of them, or until part says false: the caller comes back for the rest.
function pop_entries(queue, group, most, part)
  local key, taken, parts = log_key(queue, group.name), 0, 0
  while taken < most and parts < RUNS_A_CALL do
    local entry = call('LINDEX', key, 0)
    if not entry then break end
    local first, count, deliveries = unpack_struct(LOG_ENTRY, entry)
    local wanted = min(count, most - taken)
    local done = 0
    while done < wanted and parts < RUNS_A_CALL do
      local last = min(first + wanted - 1, (segment_of(first + done) + 1) * SEGMENT)
      parts = part(first + done, last, deliveries) == false and RUNS_A_CALL or parts + 1
      done = last - first + 1
    end
    if done == count then
      call('LPOP', key)
    else
      call('LSET', key, 0, pack(LOG_ENTRY, first + done, count - done, deliveries))
    end
    taken = taken + done
  end
  group.base = group.base + taken
  return taken
end

-- Gives what a log still holds back to the queue, each a delivery more, at most RUNS_A_CALL pieces of it.
function give_back_claims(s, group)
  s.claimed = s.claimed - pop_entries(s.queue, group, group.next - group.base, function(first, last, deliveries)
    local id = s.config.has_sessions and session_id_of(bodies_of(s.queue, segment_of(first), first, first)[1])
    give_back(s, first, last, deliveries + 1, false, id and session_of(s, id) or nil, true)
    return s.work < WORK_A_CALL
  end)
  let_sessions_go(s, group)
end

-- Gives back claims of a group whose lease has lapsed, at most RUNS_A_CALL pieces of one group a call.
function give_back_lapsed(s, now, except)
  if s.claimed == 0 then return end
  local names = call('ZRANGE', s.queue .. ':groups', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 2)
  local name = names[1] ~= except and names[1] or names[2]
  if not name then return end
  local group = group_of(s.queue, name)
  group.owner, group.lost = '', group.next
  give_back_claims(s, group)
  put_group(s.queue, group)
end

-- Appends messages first..first+count-1 to a group's log, joined to its last entry where they follow on, unless they are to
-- stand apart: an entry holds messages of one session.
function log_claim(queue, group, first, count, deliveries, apart)
  local key = log_key(queue, group.name)
  local entry = not apart and call('LINDEX', key, -1)
  if entry then
    local before, length, times = unpack_struct(LOG_ENTRY, entry)
    if before + length == first and times == deliveries then
      call('LSET', key, -1, pack(LOG_ENTRY, before, length + count, deliveries))
      group.next = group.next + count
      return
    end
  end
  call('RPUSH', key, pack(LOG_ENTRY, first, count, deliveries))
  group.next = group.next + count
end

-- ---- sessions: a group holds a session for as long as it has claimed messages of it, under a lock that nobody knows and that
-- does not expire by itself, as the claims do not.

-- Sessions of which everything that was claimed has left the log may be accepted again.
function let_sessions_go(s, group)
  if not s.config.has_sessions then return end
  local key = sessions_key(s.queue, group.name)
  local ids = call('ZRANGE', key, '-inf', text(group.base), 'BYSCORE')
  if #ids == 0 then return end
  for i = 1, #ids do leave_lock(s, session_of(s, ids[i]), false) end
  call('ZREM', key, unpack(ids))
end

-- The sessions that a call may claim from, one after the other: first the one that the group claimed from last, while it has
-- more, then those that may be accepted, the one whose first message is the oldest before all.
function sessions_to_claim_from(s, group)
  local latest = call('ZRANGE', sessions_key(s.queue, group.name), -1, -1)[1]
  if s.its_sessions then finish_sessions(s) end -- some may have become available just now
  local ids = call('ZRANGE', s.queue .. ':sessions', '-inf', '(' .. text(BUSY), 'BYSCORE', 'LIMIT', 0, RUNS_A_CALL)
  local at = latest and -1 or 0
  return function()
    at = at + 1
    return at == 0 and latest or ids[at]
  end
end

-- Claims up to `most` messages of a session, in their order, at most `step` at once and as long as `go_on` says so.
function claim_session(s, now, group, id, most, step, go_on)
  local its, before = session_of(s, id), group.next
  local free = its.lock == 0
  if free then
    s.run = s.run + 1
    its.lock, its.until_ms = s.run, NEVER - 1
    s.sessions_locked = s.sessions_locked + 1
  end
  while group.next < before + most do
    local first, last, deliveries = take_from_session(s, its, now, min(step, before + most - group.next))
    if not first then break end
    log_claim(s.queue, group, first, last - first + 1, deliveries, group.next == before)
    if not go_on(first, last) then break end
  end
  if group.next > before then
    call('ZADD', sessions_key(s.queue, group.name), text(group.next), id)
  elseif free then -- all of it had expired
    leave_lock(s, its, false)
  end
end
