-- What a queue's owner set (pq_configure), as `name=value;` text in the state field `config`: parsed once for each text.

DEFAULTS = {
  lock_ms = 60000, max_deliveries = 0, ttl_ms = 0, dead_letter_expired = 0, sessions = 0, dedupe_ms = 0, quota_bytes = 0,
  status = 'Active', partition = 0, partitions = 0, given = 0, -- given: the owner's choices have been told
}
SENDING = { Active = true, ReceiveDisabled = true }
RECEIVING = { Active = true, SendDisabled = true }
local configs, roots, plain_config = {}, {}, nil -- by text, by name: both say nothing that could go stale

function parsed_config(words)
  local config = {}
  for name, default in pairs(DEFAULTS) do config[name] = default end
  for name, value in string.gmatch(words, '([%w_]+)=([^;]*);') do config[name] = tonumber(value) or value end
  config.has_sessions, config.may_send, config.may_receive =
    config.sessions == 1, SENDING[config.status], RECEIVING[config.status]
  return config
end

function written_config(config)
  local words = {}
  for name in pairs(DEFAULTS) do words[#words + 1] = name .. '=' .. (tonumber(config[name]) and text(config[name]) or config[name]) .. ';' end
  sort(words)
  return table.concat(words)
end

-- The state key of the queue that a sub-queue belongs to: of `pq:orders/$Transfer/$DeadLetterQueue` it is `pq:orders`.
function root_of(queue)
  local root = roots[queue]
  if not root then
    local at = string.find(queue, '/$', 1, true)
    root = at and sub(queue, 1, at - 1) or queue
    roots[queue] = root
  end
  return root
end

-- A sub-queue has no policy of its own: no sessions, no duplicate detection, no time to live, no delivery limit.
function config_of(words)
  if not words then
    plain_config = plain_config or parsed_config('')
    return plain_config
  end
  local config = configs[words]
  if not config then
    config = parsed_config(words)
    configs[words] = config
  end
  return config
end

-- A lock duration from ARGV; -1 is the queue's own.
function lock_duration(s, lock_ms)
  if lock_ms >= 0 then return lock_ms end
  local root = root_of(s.queue)
  if root == s.queue then return s.config.lock_ms end
  return config_of(call('HGET', root, 'config')).lock_ms
end
