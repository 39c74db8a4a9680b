-- Claim logs: how a reader that replays (Spark) consumes a queue that does not. A group claims ready messages into its log;
-- a position is the dense ordinal in that log, so reading [a, b) again gives the same messages. Acknowledging up to a
-- position takes them out of the queue. Claims are held under a lease that the group's owner renews; when it has lapsed,
-- another consumer's receive or claim may give them back, and then the group has lost them.
--
-- `<queue>:group:<group>`  owner, lease (expiry, ms), base (first ordinal in the log), next (one past the last),
--                          lost (ordinals below it that were not acknowledged by then were given back)
-- `<queue>:log:<group>`    a list of entries: first u64, count u32, deliveries before the claim u32
-- `<queue>:groups`         groups that hold claims, by lease

local ENTRY = '<I8I4I4'
local RUNS_A_CALL = 64 -- segments or runs that one claim, acknowledgement or giving back touches

local function group_key(queue, group) return queue .. ':group:' .. group end
local function log_key(queue, group) return queue .. ':log:' .. group end

local function group_of(queue, name)
  local h = call('HMGET', group_key(queue, name), 'owner', 'lease', 'base', 'next', 'lost')
  return {
    name = name, owner = h[1] or '', lease = tonumber(h[2] or 0), base = tonumber(h[3] or 0),
    next = tonumber(h[4] or 0), lost = tonumber(h[5] or 0),
  }
end

local function put_group(queue, group)
  call('HSET', group_key(queue, group.name), 'owner', group.owner, 'lease', text(group.lease), 'base', text(group.base),
    'next', text(group.next), 'lost', text(group.lost))
  if group.next > group.base then
    call('ZADD', queue .. ':groups', text(group.lease), group.name)
  else
    call('ZREM', queue .. ':groups', group.name)
  end
end

local function fenced(group, owner)
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
-- Returns how many. Whole pieces only up to RUNS_A_CALL of them: the caller comes back for the rest.
local function pop_entries(queue, group, most, part)
  local key, taken, parts = log_key(queue, group.name), 0, 0
  while taken < most and parts < RUNS_A_CALL do
    local entry = call('LINDEX', key, 0)
    if not entry then break end
    local first, count, deliveries = unpack_struct(ENTRY, entry)
    local wanted = min(count, most - taken)
    local done = 0
    while done < wanted and parts < RUNS_A_CALL do
      local last = min(first + wanted - 1, (segment_of(first + done) + 1) * SEGMENT)
      part(first + done, last, deliveries)
      done = last - first + 1
      parts = parts + 1
    end
    if done == count then
      call('LPOP', key)
    else
      call('LSET', key, 0, pack(ENTRY, first + done, count - done, deliveries))
    end
    taken = taken + done
  end
  group.base = group.base + taken
  return taken
end

-- Gives what a log still holds back to the queue, each a delivery more, at most RUNS_A_CALL pieces of it.
local function give_back_claims(state, group)
  local taken = pop_entries(state.queue, group, group.next - group.base, function(first, last, deliveries)
    give_back(state, first, last - first + 1, deliveries + 1, '')
  end)
  put(state, 'claimed', number(state, 'claimed') - taken)
end

-- Gives back claims of a group whose lease has lapsed, at most RUNS_A_CALL pieces of one group a call.
local function give_back_lapsed(state, now, except)
  local names = call('ZRANGE', state.queue .. ':groups', '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 2)
  local name = names[1] ~= except and names[1] or names[2]
  if not name then return end
  local group = group_of(state.queue, name)
  group.owner, group.lost = '', group.next
  give_back_claims(state, group)
  put_group(state.queue, group)
end

-- Appends messages first..first+count-1 to a group's log, joined to its last entry where they follow on.
local function log_claim(queue, group, first, count, deliveries)
  local key = log_key(queue, group.name)
  local entry = call('LINDEX', key, -1)
  if entry then
    local before, length, times = unpack_struct(ENTRY, entry)
    if before + length == first and times == deliveries then
      call('LSET', key, -1, pack(ENTRY, before, length + count, deliveries))
      group.next = group.next + count
      return
    end
  end
  call('RPUSH', key, pack(ENTRY, first, count, deliveries))
  group.next = group.next + count
end
