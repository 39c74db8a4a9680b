-- pq_cancel_scheduled: takes scheduled messages out of the queue, all of them or none.
-- KEYS   queue
-- ARGV   up to 1000 sequence numbers
-- REPLY  1
-- ERROR  NOTFOUND  one is not scheduled (any more); none was cancelled
command('pq_cancel_scheduled', function(queue, argv)
  if #argv < 1 or #argv > 1000 then return refusal('BADCALL', 'pq_cancel_scheduled takes 1..1000 sequence numbers') end
  local now = now_ms()
  local s = load_state(queue)
  sweep(s, now)
  local seen = {}
  for i = 1, #argv do
    local sequence = whole(argv[i], 1, 2 ^ 48)
    if not sequence or seen[sequence] or not is_scheduled(s, sequence) then
      save(s)
      return refusal('NOTFOUND', 'message ' .. argv[i] .. ' is not scheduled')
    end
    seen[sequence] = true
  end
  for i = 1, #argv do
    local sequence = tonumber(argv[i])
    local segment = segment_of(sequence)
    unschedule(s, sequence)
    remove(s, segment, sequence, sequence, bytes_of(queue, segment, sequence, sequence))
  end
  tidy(s)
  save(s)
  return 1
end, FREES)
