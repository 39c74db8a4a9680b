-- pq_send: stores a batch of messages, all or none, and gives them sequence numbers.
-- KEYS   queue
-- ARGV   sender ('' for none), number of the send (1, 2, ... for that sender; 0 without), message, message, ...
-- REPLY  {first sequence number, enqueued time in ms}; {0, 0} where this very send had been stored before
-- ERROR  SENDFORGOTTEN  the number is older than what is remembered: whether it was stored cannot be told any more
command('pq_send', function(queue, argv)
  local sender, sent = argv[1], whole(argv[2], 0, 2 ^ 47)
  if not sent or #argv < 3 then return refusal('BADCALL', 'pq_send takes sender, number and at least one message') end
  local now = now_ms()
  local last, letters
  if sender ~= '' then
    last, letters = sender_of(queue, now, sender)
    local outcome = outcome_of(last, letters, sent)
    if outcome == 'stored' then return { 0, 0 } end
    if outcome == 'forgotten' then
      return refusal('SENDFORGOTTEN', 'send ' .. sent .. ' is too old to tell whether it was stored')
    end
  end
  local state = load_state(queue, 'tail', 'in', 'marked')
  local first = number(state, 'tail') + 1
  append(state, now, argv, 3)
  save(state)
  if sender ~= '' then remember_send(queue, now, sender, last, letters, sent) end
  return { first, now }
end)
