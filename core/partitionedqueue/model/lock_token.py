"""The lock token of a message: 16 bytes that say by themselves where it is and under which lock.

So any process can settle what another has handed out, and nothing is remembered for it. The broker never uses the
number of a lock again, and refuses what is held under another one. But two queues give the same numbers, and so does
one that is made anew under an old name: clients are shown the number under the queue's seal, which others cannot open.
"""

import hashlib
import struct
from typing import Final, NamedTuple, Self
from uuid import UUID

from partitionedqueue.model import limits
from partitionedqueue.model.errors import LockLost

BYTES: Final = 16
_BIG_ENDIAN: Final = struct.Struct(">QQ")  # u16 partition and u48 sequence number, u64 lock
_GUID: Final = struct.Struct("<IHH")  # .NET writes the first three fields of a GUID little-endian
_TAG: Final = struct.Struct("<IHH8s")
_LOCAL_MASK: Final = (1 << limits.SEQUENCE_BITS) - 1


def seal_of(*names: str) -> int:
    """What tells a queue's tokens from others', of whatever tells the queue from others: the same in each process."""
    return int.from_bytes(hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest())


def shown_as(number: int, sealed: int) -> tuple[bytes, bytes]:
    """`uuid_bytes` and `tag` of the token of a 64-bit sequence number and a lock under a seal. HOT."""
    uuid_bytes = _BIG_ENDIAN.pack(number, sealed)
    return uuid_bytes, _TAG.pack(number >> 32, number >> 16 & 0xFFFF, number & 0xFFFF, uuid_bytes[8:])


class LockToken(NamedTuple):
    """A message's partition, its sequence number there, and the number of the lock that it is held under."""

    partition: int
    sequence: int
    lock: int

    @property
    def uuid_bytes(self) -> bytes:
        """As AMQP writes a uuid (§1.6.24): in maps and annotations."""
        return _BIG_ENDIAN.pack(self.partition << limits.SEQUENCE_BITS | self.sequence, self.lock)

    @property
    def uuid(self) -> UUID:
        """As people see it."""
        return UUID(bytes=self.uuid_bytes)

    @property
    def tag(self) -> bytes:
        """The bytes of a .NET GUID, which Service Bus' clients make the token of a delivery's tag from."""
        number = self.partition << limits.SEQUENCE_BITS | self.sequence
        return _GUID.pack(number >> 32, number >> 16 & 0xFFFF, number & 0xFFFF) + self.lock.to_bytes(8)

    def sealed(self, seal: int) -> "LockToken":
        """As clients see it: `from_uuid` and `from_tag` with the same seal give it back."""
        return LockToken(self.partition, self.sequence, self.lock ^ seal)

    @classmethod
    def from_uuid(cls, uuid: UUID, seal: int = 0) -> Self:
        """Raises LockLost for what was never a token here."""
        number, lock = _BIG_ENDIAN.unpack(uuid.bytes)
        return cls._checked(number, lock, seal)

    @classmethod
    def from_tag(cls, tag: bytes, seal: int = 0) -> Self:
        """Raises LockLost for what was never a token here."""
        if len(tag) != BYTES:
            raise LockLost(f"a lock token has {BYTES} bytes, not {len(tag)}")
        low, middle, high = _GUID.unpack_from(tag)
        return cls._checked(low << 32 | middle << 16 | high, int.from_bytes(tag[8:]), seal)

    @classmethod
    def _checked(cls, number: int, sealed: int, seal: int) -> Self:
        partition, sequence, lock = number >> limits.SEQUENCE_BITS, number & _LOCAL_MASK, sealed ^ seal
        if partition > limits.PARTITION_MAX or not sequence or not 0 < lock < limits.BROKER_NUMBER_MAX:
            raise LockLost("the lock token is none that was handed out here")
        return cls(partition, sequence, lock)
