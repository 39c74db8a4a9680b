-- Claim logs: how a reader that replays (Spark) consumes a queue that does not. A group claims ready messages into its log;
-- a position is the dense ordinal in that log, so reading [a, b) again gives the same messages. Acknowledging up to a
-- position takes them out of the queue. Claims are held under a lease that the group's owner renews; when it has lapsed,
-- another consumer's receive or claim may give them back, and then the group has lost them.
--
-- `<queue>:group:<group>`  owner, lease (expiry, ms), base (first ordinal in the log), next (one past the last),
--                          lost (ordinals below it that were not acknowledged by then were given back)
-- `<queue>:log:<group>`    a list of entries: first u64, count u32, deliveries before the claim u32
-- `<queue>:groups`         groups that hold claims, by lease

LOG_ENTRY = '<I8I4I4'
RUNS_A_CALL = 64 -- segments or runs that one claim, acknowledgement or giving back touches

local function group_key(queue, group) return queue .. ':group:' .. group end
function log_key(queue, group) return queue .. ':log:' .. group end

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
    give_back(s, first, last, deliveries + 1, false, nil, true)
    return s.work < WORK_A_CALL
  end)
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

-- Appends messages first..first+count-1 to a group's log, joined to its last entry where they follow on.
function log_claim(queue, group, first, count, deliveries)
  local key = log_key(queue, group.name)
  local entry = call('LINDEX', key, -1)
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
