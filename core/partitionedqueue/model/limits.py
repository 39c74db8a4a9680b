"""Every bound, with its reason and its source. Buffers, waits and retries take their maximum from here."""

from typing import Final

# Azure Service Bus quotas.
MESSAGE_BYTES_MAX: Final = 256 * 1024  # a message in a partitioned entity
MESSAGE_BYTES_MAX_CONVENTIONAL: Final = 1024 * 1024  # and in one that is not
MESSAGE_ID_CHARACTERS_MAX: Final = 128
SESSION_ID_CHARACTERS_MAX: Final = 128
PARTITION_KEY_CHARACTERS_MAX: Final = 128
HEADER_BYTES_MAX: Final = 64 * 1024  # properties and application properties together
EMPTY_ARRAY_ITEMS_MAX: Final = 1_024  # of an AMQP array whose items take no bytes: so few could be four billion
BATCHED_MESSAGES_MAX: Final = 4_000  # in one batch: what a broker takes in one call (pq_send)
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
TRANSACTION_OPERATIONS_MAX: Final = 100  # Azure's 100 messages in one transaction: each is sent or settled by one
SESSION_STATE_BYTES_MAX: Final = MESSAGE_BYTES_MAX  # a session's state is as large as a message can be
DEAD_LETTER_TEXT_CHARACTERS_MAX: Final = 4_096  # of DeadLetterReason and DeadLetterErrorDescription, each
OPERATION_TIMEOUT_S_DEFAULT: Final = 60.0
OPERATION_TIMEOUT_S_MIN: Final = 15.0

# Sizes an entity may have, in GB; 16 partitions for each where partitioned (the article's table).
SIZES_GB_PARTITIONED: Final = (1, 2, 3, 4, 5)
SIZES_GB_CONVENTIONAL: Final = (1, 2, 3, 4, 5, 10, 20, 40, 80)
PARTITIONS_PER_GB: Final = 16

# Kubernetes.
PARTITIONED_ENTITIES_MAX: Final = 100  # a namespace (Azure's quota)
# 63 characters of a label hold the StatefulSet's name and a revision's hash: NAME-broker-0123456789.
QUEUE_NAME_CHARACTERS_MAX: Final = 45
OBJECT_NAME_CHARACTERS_MAX: Final = 253  # as the next one, Kubernetes' own
LABEL_CHARACTERS_MAX: Final = 63
# What a manifest's lists and texts may hold: the API server weighs its rules by these figures.
RESOURCES_MAX: Final = 16
POD_LABELS_MAX: Final = 64
ANNOTATION_CHARACTERS_MAX: Final = 4_096
TOLERATIONS_MAX: Final = 32
IMAGE_PULL_SECRETS_MAX: Final = 16
TOPOLOGY_SPREAD_CONSTRAINTS_MAX: Final = 16
IMAGE_CHARACTERS_MAX: Final = 512

# Sequence numbers: 64 bits, the partition in the top 16.
SEQUENCE_BITS: Final = 48
PARTITION_MAX: Final = 2**15 - 1  # the top bit stays clear: clients read a signed 64-bit number

# The broker's layout and calls; the Lua library has the same figures (a contract test compares them).
SEGMENT_MESSAGES: Final = 256  # messages in one list: a reply of a few hundred is the fastest to read
RECEIVE_MESSAGES_MAX: Final = 1_000  # a call ends sooner where they add up to 4 MB
RECEIVE_BYTES_DEFAULT: Final = 4 * 1024 * 1024  # where a receive names no bound: some ten milliseconds' work
BROKER_NUMBER_MAX: Final = 2**53  # whole numbers that Lua counts exactly; as milliseconds, longer than any clock goes
PEEK_MESSAGES_MAX: Final = 1_000
PEEK_BYTES_MAX: Final = 256 * 1024
SETTLEMENTS_MAX: Final = 1_000  # in one call
SEQUENCES_MAX: Final = 1_000  # sequence numbers in one call: of deferred, scheduled or dead-lettered messages
SESSIONS_LISTED_MAX: Final = 1_000  # in one call
FINGERPRINT_BYTES: Final = 12  # two of a billion remembered are alike by chance in one queue of 10^11
SENDS_IN_FLIGHT_MAX: Final = 64  # a broker remembers this many sends of one sender

# Clients of a broker.
CALL_TIMEOUT_S_DEFAULT: Final = 10.0
RECONNECT_DELAY_S_MIN: Final = 0.05
RECONNECT_DELAY_S_MAX: Final = 2.0
SLOW_BROKER_S: Final = 1.0  # keyless messages pass over a partition that has not answered for so long
CALLS_IN_FLIGHT_MAX: Final = 4_096  # for one connection; a further call waits
COMPANY_MESSAGES_MAX: Final = 64  # keyless sends that go to one partition together, then the next's
LANES_IN_USE_MIN: Final = 4  # partitions that are sent to at the same time before a keyless send waits for another
SEND_BATCH_MESSAGES_MAX: Final = 256  # sends that are coalesced into one call
SEND_BATCH_BYTES_MAX: Final = 1024 * 1024

# Waking and sweeping.
BELL_LINGER_S: Final = (
    30.0  # a channel without listeners is kept so long: a receiver that has what it wanted comes back
)
BELL_PING_S: Final = 5.0  # a broker that has not answered one ping by the next is taken for gone
BELL_BEGIN_S_MAX: Final = 1.0  # a receiver waits so long for its channel, then asks all the same
UNHEARD_ASK_S: Final = 1.0  # where the channel is not heard, waiting receivers and the sweeper ask this often
ASK_AGAIN_S_MAX: Final = 60.0  # and this often where it is: the broker's clock may have been set forward meanwhile
RECEIVER_CLOSE_S_MAX: Final = 2.0  # what is under way is waited for so long; then its locks are left to expire
SWEEP_S_MIN: Final = 0.01  # between two sweeps of a queue that is behind: others are served in between
SWEEP_RUNG_S: Final = 1.0  # and of one whose channel rings: so late at most is what falls due sooner than was known
SWEEPS_AT_ONCE_MAX: Final = 64  # queues of one broker
LAYOUT_WITH_PUSHES: Final = 2  # the first layout whose library takes in what is pushed past Lua
SENDS_AFTER_A_WRONG_GUESS: Final = 16  # go through Lua: a push to the wrong place costs more than it saves
PUSHED_MESSAGES_MAX: Final = 1_024  # in one such call
PUSHED_BYTES_MIN: Final = 4096  # sends of so much go past Lua: below, a call more costs what they save
