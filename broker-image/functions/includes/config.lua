-- What a queue's owner set (pq_configure), packed in the state field `config`: parsed once for each text.

local CONFIG = '<I4I2I6BBI4I8I2I2BB'
local NAMES = { 'lock_ms', 'max_deliveries', 'ttl_ms', 'dead_letter_expired', 'sessions', 'dedupe_ms', 'quota_bytes',
  'partition', 'partitions', 'given', 'status' } -- given: the owner's choices have been told
local STATUSES = { 'Active', 'Disabled', 'SendDisabled', 'ReceiveDisabled' }
SENDING = { Active = true, ReceiveDisabled = true }
RECEIVING = { Active = true, SendDisabled = true }
local configs, roots, plain_config = {}, {}, nil -- by text, by name: both say nothing that could go stale

function written_config(config)
  local values = {}
  for i = 1, #NAMES do values[i] = config[NAMES[i]] end
  for i = 1, #STATUSES do
    if STATUSES[i] == config.status then values[#NAMES] = i end
  end
  return pack(CONFIG, unpack(values))
end

local function parsed_config(words)
  local values, config = { unpack_struct(CONFIG, words) }, {}
  for i = 1, #NAMES do config[NAMES[i]] = values[i] end
  config.status = STATUSES[config.status]
  config.has_sessions, config.may_send, config.may_receive =
    config.sessions == 1, SENDING[config.status], RECEIVING[config.status]
  return config
end

-- What holds where nothing has been set. A sub-queue has no policy of its own: no sessions, no duplicate detection, no time
-- to live, no delivery limit.
function default_config()
  plain_config = plain_config or parsed_config(pack(CONFIG, 60000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
  return plain_config
end

-- Its settings alone, to be changed.
function settings_of(config)
  local settings = {}
  for i = 1, #NAMES do settings[NAMES[i]] = config[NAMES[i]] end
  return settings
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

function config_of(words)
  if not words then return default_config() end
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
  local root = s.root
  if root == s.queue then return s.config.lock_ms end
  return config_of(call('HGET', root, 'config')).lock_ms
end
