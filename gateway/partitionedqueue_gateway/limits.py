"""Every bound of the gateway, each with its reason."""

from typing import Final

# Asking the brokers.
PARTITION_ANSWER_S_MAX: Final = 3.0
"""A partition that has not said within this how it stands is sick: a healthy one on a busy machine has."""

CONNECTS_AT_ONCE_MAX: Final = 64
"""Of 8,000 brokers that are asked for the first time. Names are looked up in threads; so many are not kept waiting."""

SICK_REST_FACTOR: Final = 4
"""A partition that took t seconds to fail is left alone for 4 t: at most a fifth of the time is spent on it."""

REPORT_FRESH_S: Final = 1.0
"""Counts so old are as good as new: many who ask do not multiply what brokers are asked."""

REPORTS_WAIT_S_MAX: Final = 8.0
"""For the counts of all queues; those that are not there by then are given as they were. Prometheus waits 10 s."""

PASSWORD_AGAIN_S_MIN: Final = 5.0
"""A Secret is read again no sooner, however many brokers refuse its password."""

# Queues in use.
SHARE_MIN: Final = 256
"""Messages that are asked of one partition, where so many are wanted and known to be there, before others are asked."""

RECEIVED_BYTES_MAX: Final = 64 << 20
"""What all partitions of a queue may hand out at the same time: large messages are asked for in smaller shares."""

SLOW_ASK_S: Final = 1.0
"""A partition that has not answered for so long keeps nobody waiting: what was asked of it is asked of others. What it
says later is given to whoever wants it by then, or back."""

LINGER_S: Final = 30.0
"""What is known of the partitions is kept for so long without receivers: one that comes back need not ask them all."""

FAN_IN_DRAIN_S_MAX: Final = 1.0
"""A partition that does not answer keeps no drain waiting longer: clients give a link up that is not drained soon."""

DELETED_KEPT_S: Final = 5.0
"""What was deleted for a receiver that left is kept for the next one; after this it is put back into the queue."""

SETTLE_S_MAX: Final = 15.0
"""A partition that is away is waited for so long when something is settled: then the client hears that it may retry."""

DELETE_S_MAX: Final = 4.0
"""For a partition to delete deferred messages that it has locked for that; the shortest locks last for 5 s."""

ENTITIES_CLOSE_S_MAX: Final = 5.0
"""At the end, what is under way to nobody is given back within this; then its locks are left to expire."""

PEEKS_AT_ONCE_MAX: Final = 16
"""Partitions that are looked into at the same time for one peek."""

# The cluster.
API_ANSWER_S_MAX: Final = 30.0
"""For one answer of the API server that is no watch."""

API_BYTES_MAX: Final = 64 << 20
"""Of one such answer: 100 queues of half a megabyte, which is more than etcd takes in one object."""

LIST_PAGE_MAX: Final = 100
"""Queues in one page of a list."""

WATCH_S_MIN: Final = 240
WATCH_S_MAX: Final = 360
"""The API server is asked to end a watch after a time between these: two gateways do not begin anew together."""

WATCH_SILENT_S_MAX: Final = 90.0
"""The API server sends a bookmark about every minute: a watch that is silent for so long is frozen, and begun anew."""

WATCH_EVENT_BYTES_MAX: Final = 4 << 20
"""etcd takes objects of 1.5 MB; in JSON, with what the API server adds, they stay below this."""

RETRY_S_MIN: Final = 0.2
RETRY_S_MAX: Final = 30.0
"""The wait before the API server is asked again doubles from the first to the last, and is drawn below that."""

FROZEN_S_MIN: Final = 300.0
"""A source that has tried nothing for so long is stuck: every wait above is shorter. Then /healthz says so."""

# A folder.
FOLDER_POLL_S: Final = 0.25
"""How often its files are looked at."""

MANIFEST_BYTES_MAX: Final = 16 << 20
"""Of one file."""

# HTTP.
REQUEST_BYTES_MAX: Final = 1 << 16
"""No request of today has a body."""

REQUESTS_AT_ONCE_MAX: Final = 256
"""Further ones are answered 503 at once; those that wait for messages are bounded by the connections alone."""

CONNECTIONS_MAX: Final = 1_024
"""A further one takes the place of the one that has been without a request longest; with none such it is closed."""

HTTP_WAITS_MAX: Final = 900
"""Requests that wait for messages; further ones are answered 503. So probes and senders always find a connection."""

HEADER_BYTES_MAX: Final = 1 << 16
"""Of one header line: Azure's bound on all properties of a message, BrokerProperties being one."""

BODY_S_MAX: Final = 60.0
"""For a body to come."""

BATCH_BODY_FACTOR: Final = 2
"""A batch's JSON may be so many times as long as what may be in it: base64 and escapes."""

BODIES_BYTES_MAX: Final = 128 << 20
"""Of all bodies that are being read or stored: 500 of the largest; further requests are answered 503."""

HTTP_TIMEOUT_S_DEFAULT: Final = 60.0
"""For a message to come, or to be stored, where a request names no time: Azure's."""

HTTP_TIMEOUT_S_MAX: Final = 300.0
"""Requests that name a longer one wait for this: proxies let go of them sooner."""

HTTP_SEND_S_MIN: Final = 1.0
"""For a message to be stored, however little time a request names."""

IDLE_S_MAX: Final = 75.0
"""A connection without a request, begun or not, is closed after this."""

DRAIN_S_DEFAULT: Final = 5.0
"""After SIGTERM /readyz says no for so long, while all else is answered: Services must leave this gateway out first."""

DRAIN_S_TOLD_MAX: Final = 300.0

END_S_MAX: Final = 15.0
"""Then nothing new is taken; AMQP's conversations have so long, then HTTP's requests. The chart's grace is longer."""

NAME_LOOKUPS_AT_ONCE_MAX: Final = 32
"""Threads: one that waits for the name of a broker must not keep all others waiting."""

# Administration.
ADMINISTRATION_BYTES_MAX: Final = 1 << 16
"""Of a request's body: a description of a queue, with user metadata of 1,024 characters, has 4 KB."""

LIST_ENTRIES_MAX: Final = 100
"""Queues in one page, as on Azure."""

LIST_SKIP_MAX: Final = 1_000_000
"""Queues that a page may leave out before it begins."""

CREATE_WAIT_S_MAX: Final = 40.0
"""For a new queue's partitions to serve, before it is given as it is: Java's client waits for 60 s."""

CREATE_LOOK_S: Final = 0.25
"""How often it is looked whether they do."""

CREATIONS_AT_ONCE_MAX: Final = 32
"""Under way in one process; further ones are answered 503. They wait long, and leave room for other requests."""

CHANGE_WAIT_S_MAX: Final = 10.0
"""For the catalog to hear of what was changed; the source has it in any case."""

CHANGE_LOOK_S: Final = 0.02
"""How often it is looked whether whoever runs the brokers of a folder has answered."""

CHANGE_ANSWER_S_MAX: Final = 45.0
"""For whoever runs the brokers of a folder to start, tell or end those of one queue."""

# Access.
KEY_LENGTH_MIN: Final = 12
"""Of a policy's key: Azure's have 44 characters, its emulator's is SAS_KEY_VALUE."""

TOKEN_LENGTH_MAX: Final = 8_192
"""Of a shared access signature: names of 260 characters, percent-encoded several times over, stay below this."""

POLICIES_MAX: Final = 1_000
"""Azure has 12 a namespace and 12 an entity."""

POLICY_BYTES_MAX: Final = 1 << 16
"""Of one file."""

SECRETS_POLL_S: Final = 2.0
"""How often files with keys and certificates are looked at; the kubelet itself takes up to a minute to change them."""

# The front door.
CLIENT_SILENT_S: Final = 20
CLIENT_PROBE_S: Final = 5
CLIENT_PROBES: Final = 4
"""A client's machine that is silent for the first is asked so often, this far apart; without an answer it has gone."""

GREETING_S_MAX: Final = 20.0
"""For the first byte, TLS's handshake, and all that a client says before it has opened its connection."""

GREETINGS_MAX: Final = 6_000
"""Connections that have said nothing yet; when there are more, the one that has been silent longest is closed. All that
may be here come at once when a gateway beside this one has gone."""

STRANGERS_S_MAX: Final = 60.0
"""For a token, or whoever has none could take all the places below."""

AMQP_CONNECTIONS_MAX: Final = 5_000
"""In one process; further ones are closed as they come. Azure takes so many for a namespace."""

ACCEPTED_AT_ONCE_MAX: Final = 64
"""In one turn of the loop, so that those who are being served do not wait for those who knock."""

ACCEPT_AGAIN_S: Final = 0.5
"""When there are no file descriptors left."""

FLUSH_S_MAX: Final = 10.0
"""For a peer to take what was written before its connection was closed."""

WRITE_BUFFER_BYTES_MAX: Final = 1 << 20
"""What waits for a peer before its conversation is asked to pause: one frame of the largest size that SDKs offer."""

STALLED_S_MAX: Final = 60.0
"""A peer that has not read enough for so long to empty its buffer to a quarter is cut off."""

WEBSOCKET_MESSAGE_BYTES_MAX: Final = 4 << 20
"""AMQP's frames in one message; clients send one or a few at a time, of at most 1 MiB each."""

WEBSOCKET_PIECE_BYTES: Final = 1 << 15
"""Sent in one message: AMQP's frames may lie across several, and small ones suit every client's buffers."""

PROCESSES_MAX: Final = 64
"""On one machine, on the same ports."""

PROCESS_RESTART_S_MIN: Final = 0.2
PROCESS_RESTART_S_MAX: Final = 10.0
"""The wait before a process that has ended is started anew doubles from the first to the last."""

PROCESS_STEADY_S: Final = 30.0
"""One that has run for so long begins anew with the first."""

# AMQP: what one client may keep busy (the engine's own bounds stand beside it).
TOKENS_MAX: Final = 1_000
"""Audiences that one connection has claims for: SDKs put one for each entity and its management node."""

SENDS_GRANTED: Final = 1_000
"""Messages that a link may have sent and not yet heard of; Azure grants as many."""

CONNECTION_SENDS_BYTES_MAX: Final = 16 << 20
"""Of one connection's messages that are not stored yet: nothing more is read from it until half of them are."""

SENDS_BYTES_MAX: Final = 256 << 20
"""Of all connections of a process together."""

SENDS_BYTES_SHARE: Final = 1 << 18
"""So much a connection may have under way all the same: one message of the largest size never stops."""

RECEIVES_WANTED_MAX: Final = 1_000
"""Messages that a link has asked its entity for at a time, whatever credit its client gave."""

RECEIVES_BYTES_WANTED: Final = 4 << 20
"""What those may come to, by the size of the messages that came before."""

RECEIVED_BYTES_GUESS: Final = 65_536.0
"""For one message, before the first has come: a receiver begins with few, and asks for more when it knows them."""

REQUESTS_AT_ONCE: Final = 100
"""Requests to one management node that are under way; a client that has so many has no credit for another."""

ANSWERS_KEPT_MAX: Final = 200
"""Answers of a link whose client gave no credit for them; beyond that the link is detached."""

ANSWERS_BYTES_MAX: Final = 64 << 20
"""And of all such links of a connection together."""

AMQP_OPERATION_S_MAX: Final = 60.0
"""What clients wait for by default, and Azure at most."""

ACCEPT_SESSION_S_DEFAULT: Final = 65.0
"""How long the next session is waited for where the client does not say; Azure's time."""

ACCEPT_SESSION_S_MAX: Final = 300.0
"""And at most, where it does."""

DRAIN_SENDS_S_MAX: Final = 8.0
"""At the end, what is being stored is waited for so long, so that its sender is told: half of END_S_MAX."""

DRAIN_LOOK_S: Final = 0.02
"""How often it is looked whether that is done."""

CLAIMS_LOOK_S_MAX: Final = 3_600.0
"""How far ahead a timer for the end of a client's claims is set: a token may be good for years."""

PEER_CLOSE_S_MAX: Final = 2.0
"""Then the peer has so long to answer the close."""

REQUEST_BYTES_BESIDE: Final = 1 << 20
"""A request to a management node holds the largest message, or several that come to so much more."""

TOKEN_REQUEST_BYTES_MAX: Final = 1 << 16
"""A request to $cbs: a token of the largest size, and what is said beside it."""

SEND_BYTES_BESIDE: Final = 1_024
"""What a message that is not stored yet takes beside its own bytes, roughly."""

# AMQP frames and what they hold.
AMQP_FRAME_BYTES_MAX: Final = 262_144
"""What a peer is told of: a message of a partitioned entity's largest size and its frame's head are two of them."""

AMQP_GREETING_FRAME_BYTES_MAX: Final = 16_384
"""Of frames before the connection is open (AMQP says 512; SDKs put their properties into open)."""

AMQP_NESTING_MAX: Final = 16
"""Lists, maps, arrays and descriptions within each other; a source with filters and their descriptions needs 6."""

AMQP_EMPTY_ITEMS_MAX: Final = 1_024
"""Of an array whose items take no bytes: its size bounds nothing."""

AMQP_TAG_BYTES_MAX: Final = 32
"""Of a delivery's tag (§2.8.7)."""

# AMQP connections.
AMQP_CHANNEL_MAX: Final = 4_999
"""The largest number of an AMQP session, from 0: Java, JavaScript and .NET have one for each link."""

AMQP_HANDLE_MAX: Final = 255
"""The largest number of a link within its AMQP session, from 0."""

AMQP_LINKS_MAX: Final = 5_000
"""Of one connection, over all its AMQP sessions: as many as it may have of these."""

AMQP_NAME_LENGTH_MAX: Final = 1_024
"""Of a link or a container; Java's link names are an address and two numbers behind it."""

AMQP_IDLE_MS: Final = 240_000
"""Told to peers, Azure's value: Python's sender says nothing between two calls. Who is silent twice as long is gone."""

AMQP_GREETING_S_MAX: Final = 30.0
"""From the first byte to open."""

AMQP_CLOSE_S_MAX: Final = 5.0
"""For a peer to answer our close."""

AMQP_KEEP_ALIVE_S_MIN: Final = 0.5
"""Peers that want to hear of us more often than this are refused."""

# AMQP's flow.
AMQP_WINDOW_FRAMES: Final = 5_000
"""Transfers that a peer may send in an AMQP session ahead of our next flow, which comes after half of them."""

AMQP_PARTIAL_BYTES_MAX: Final = 8 << 20
"""Of all messages of a connection that have begun and not ended: eight of the largest at once."""

AMQP_MESSAGE_BYTES_MAX: Final = 1 << 20
"""Of a message, or of a batch, on a link that names no smaller size of its own."""

AMQP_OVERDRAFT_MAX: Final = 100
"""Messages that a peer may send beyond its credit: Python's sender looks at its credit only now and then."""

AMQP_UNSETTLED_MAX: Final = 65_536
"""Deliveries of an AMQP session, each way. A receiver that never settles has lost the locks of the oldest: these are
released. A sender has far less credit than this."""
