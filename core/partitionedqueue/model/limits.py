"""Every bound, with its reason and its source. Buffers, waits and retries take their maximum from here."""

from typing import Final

# Azure Service Bus quotas.
MESSAGE_BYTES_MAX: Final = 256 * 1024  # a message, as stored, in a partitioned entity
MESSAGE_ID_CHARACTERS_MAX: Final = 128
SESSION_ID_CHARACTERS_MAX: Final = 128
PARTITION_KEY_CHARACTERS_MAX: Final = 128
HEADER_BYTES_MAX: Final = 64 * 1024  # properties and application properties together
ENTITY_NAME_CHARACTERS_MAX: Final = 260
LOCK_DURATION_MS_MIN: Final = 5_000
LOCK_DURATION_MS_MAX: Final = 300_000
LOCK_DURATION_MS_DEFAULT: Final = 60_000
MAX_DELIVERY_COUNT_MIN: Final = 1
MAX_DELIVERY_COUNT_MAX: Final = 2_000
MAX_DELIVERY_COUNT_DEFAULT: Final = 10
DUPLICATE_DETECTION_WINDOW_MS_MIN: Final = 20_000
DUPLICATE_DETECTION_WINDOW_MS_MAX: Final = 7 * 86_400_000
DUPLICATE_DETECTION_WINDOW_MS_DEFAULT: Final = 600_000
TIME_TO_LIVE_MS_MIN: Final = 1_000
AUTO_DELETE_ON_IDLE_MS_MIN: Final = 300_000
TIME_MS_MAX: Final = 2**63 - 1  # .NET's TimeSpan.MaxValue is below it
USER_METADATA_CHARACTERS_MAX: Final = 1_024
OPERATION_TIMEOUT_S_DEFAULT: Final = 60.0
OPERATION_TIMEOUT_S_MIN: Final = 15.0

# Sizes an entity may have, in GB; 16 partitions for each where partitioned (the article's table).
SIZES_GB_PARTITIONED: Final = (1, 2, 3, 4, 5)
SIZES_GB_CONVENTIONAL: Final = (1, 2, 3, 4, 5, 10, 20, 40, 80)
PARTITIONS_PER_GB: Final = 16

# Sequence numbers: 64 bits, the partition in the top 16.
SEQUENCE_BITS: Final = 48
PARTITION_MAX: Final = 2**15 - 1  # the top bit stays clear: clients read a signed 64-bit number

# The broker's layout and calls; the Lua library has the same figures (a contract test compares them).
SEGMENT_MESSAGES: Final = 256  # messages in one list: a reply of a few hundred is the fastest to read
RECEIVE_MESSAGES_MAX: Final = 1_000  # a call ends sooner where they add up to 4 MB
PEEK_BYTES_MAX: Final = 256 * 1024
SETTLEMENTS_MAX: Final = 1_000  # in one call
SENDS_IN_FLIGHT_MAX: Final = 64  # a broker remembers this many sends of one sender

# Clients of a broker.
CALL_TIMEOUT_S_DEFAULT: Final = 10.0
RECONNECT_DELAY_S_MIN: Final = 0.05
RECONNECT_DELAY_S_MAX: Final = 2.0
SLOW_BROKER_S: Final = 1.0  # keyless messages pass over a partition that has not answered for so long
CALLS_IN_FLIGHT_MAX: Final = 4_096  # for one connection; a further call waits
SEND_BATCH_MESSAGES_MAX: Final = 256  # sends that are coalesced into one call
SEND_BATCH_BYTES_MAX: Final = 1024 * 1024
