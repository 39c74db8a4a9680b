-- pq_send: stores a batch of messages, all or none, and gives them sequence numbers. A message whose header says a time to
-- come is scheduled: its number serves to cancel it, and it is numbered anew when its time comes.
-- KEYS   queue
-- ARGV   sender ('' for none), number of the send (1, 2, ... for that sender; 0 without), fingerprints ('', or 12 bytes for
--        each message; zeros where it has no MessageId), message, message, ...
-- REPLY  {first sequence number, enqueued time in ms, place of a duplicate, ...}: the others are numbered first, first + 1, ...
--        {0, now, place, ...} where all are duplicates; {0, 0} where this very send had been stored before
-- ERROR  SENDFORGOTTEN    the number is older than what is remembered: whether it was stored cannot be told any more
--        QUOTA            the partition has no room · DISABLED  the queue's status forbids it
--        SESSIONREQUIRED  a message without SessionId, or of another session than the first, in a queue with sessions
local MESSAGES_MOST = 4000 -- in one call

command('pq_send', function(queue, argv)
  local sender, sent = argv[1], whole(argv[2], 0, 2 ^ 47)
  if not sent or #argv < 4 or #argv > 3 + MESSAGES_MOST then
    return refusal('BADCALL', 'pq_send takes sender, number, fingerprints and 1..' .. MESSAGES_MOST .. ' messages')
  end
  local now = now_ms()
  local s, last, letters
  if sender ~= '' then
    s = load_state(queue, 'n' .. sender)
    last, letters = sender_of(s, sender)
    local outcome = outcome_of(last, letters, sent)
    if outcome == 'stored' then return { 0, 0 } end
    if outcome == 'forgotten' then
      return refusal('SENDFORGOTTEN', 'send ' .. sent .. ' is too old to tell whether it was stored')
    end
  else
    s = load_state(queue)
  end
  local no, id = may_take_in(s, argv, 4, #argv, argv[3])
  if no then return no end
  local reply = take_in(s, now, argv, 4, #argv, argv[3], id)
  if sender ~= '' then remember_send(s, now, sender, last, letters, sent) end
  tidy(s)
  save(s)
  return reply
end)
