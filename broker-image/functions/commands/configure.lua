-- pq_configure: says which partition of a queue this broker holds, so that nobody takes it for another, and what the queue's
-- owner has set. The place is for ever: keys map onto the number of partitions.
-- KEYS   queue
-- ARGV   partition (from 0), partitions of the queue, then name, value, ... of: lock_ms, max_deliveries (0: no limit),
--        ttl_ms (0: none), dead_letter_expired (0, 1), sessions (0, 1), dedupe_ms (the window; 0: no detection),
--        quota_bytes (0: none), status (Active, Disabled, SendDisabled, ReceiveDisabled). What is left out stays as it is
-- REPLY  1
-- ERROR  MISPLACED  it holds another partition, or one of another number of partitions
--        IMMUTABLE  sessions, or whether duplicates are detected, cannot change
local BOUNDS = {
  lock_ms = { 1, 300000 }, max_deliveries = { 0, 2000 }, ttl_ms = { 0, 2 ^ 53 }, dead_letter_expired = { 0, 1 },
  sessions = { 0, 1 }, dedupe_ms = { 0, 604800000 }, quota_bytes = { 0, 2 ^ 50 },
}

command('pq_configure', function(queue, argv)
  local partition, partitions = whole(argv[1], 0, 2 ^ 15), whole(argv[2], 1, 2 ^ 15)
  if not partition or not partitions or partition >= partitions or #argv % 2 == 1 then
    return refusal('BADCALL', 'pq_configure takes a partition, the number of partitions, and names with values')
  end
  if root_of(queue) ~= queue then return refusal('BADCALL', 'a sub-queue is configured with its queue') end
  local s = load_state(queue)
  local config, words = s.config, settings_of(s.config)
  if config.partitions > 0 and (config.partition ~= partition or config.partitions ~= partitions) then
    return refusal('MISPLACED', 'this broker holds partition ' .. config.partition .. ' of ' .. config.partitions
      .. ', not ' .. argv[1] .. ' of ' .. argv[2])
  end
  words.partition, words.partitions = partition, partitions
  for i = 3, #argv, 2 do
    local name, value = argv[i], argv[i + 1]
    local bounds = BOUNDS[name]
    if bounds then
      value = whole(value, bounds[1], bounds[2])
    elseif name ~= 'status' or not (value == 'Disabled' or SENDING[value] or RECEIVING[value]) then
      value = nil
    end
    if not value then return refusal('BADCALL', 'pq_configure: ' .. name .. ' cannot be ' .. argv[i + 1]) end
    if config.given == 1 and ((name == 'sessions' and value ~= config.sessions)
      or (name == 'dedupe_ms' and (value > 0) ~= (config.dedupe_ms > 0))) then
      return refusal('IMMUTABLE', 'a queue ' .. (name == 'sessions' and 'with or without sessions'
        or 'that detects duplicates, or does not,') .. ' stays so: delete it and create it anew')
    end
    words[name] = name == 'ttl_ms' and min(value, NEVER) or value
  end
  if #argv > 2 then words.given = 1 end
  put(s, 'config', written_config(words))
  s.config = config_of(get(s, 'config'))
  s.packed = false -- the counters are written even where all are zero: there is such a queue from now on
  save(s)
  return 1
end, FREES)
