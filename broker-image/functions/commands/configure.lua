-- pq_configure: says which partition of a queue this broker holds, so that nobody takes it for another. For ever: keys map
-- onto the number of partitions.
-- KEYS   queue
-- ARGV   partition (from 0), partitions of the queue
-- REPLY  1
-- ERROR  MISPLACED  it holds another partition, or one of another number of partitions
command('pq_configure', function(queue, argv)
  local partition, partitions = whole(argv[1], 0, 2 ^ 15), whole(argv[2], 1, 2 ^ 15)
  if not partition or not partitions or partition >= partitions then
    return refusal('BADCALL', 'pq_configure takes a partition and the number of partitions')
  end
  local state = load_state(queue, 'partition', 'partitions')
  local before = number(state, 'partitions')
  if before > 0 and (number(state, 'partition') ~= partition or before ~= partitions) then
    return refusal('MISPLACED', 'this broker holds partition ' .. text(number(state, 'partition')) .. ' of ' .. text(before)
      .. ', not ' .. argv[1] .. ' of ' .. argv[2])
  end
  put(state, 'partition', partition)
  put(state, 'partitions', partitions)
  save(state)
  return 1
end, { 'allow-oom' })
