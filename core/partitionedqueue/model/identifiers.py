"""Numbers that look alike and are not."""

from typing import NewType

from partitionedqueue.model import limits

PartitionId = NewType("PartitionId", int)
SequenceNumber = NewType("SequenceNumber", int)

_LOCAL_MASK = (1 << limits.SEQUENCE_BITS) - 1


def sequence_number(partition: int, local: int) -> SequenceNumber:
    """The 64-bit number that clients see: the partition in the top 16 bits, its own counter in the lower 48."""
    if not 0 <= partition <= limits.PARTITION_MAX or not 0 < local <= _LOCAL_MASK:
        raise ValueError(f"no sequence number has partition {partition} and counter {local}")
    return SequenceNumber(partition << limits.SEQUENCE_BITS | local)


def split_sequence_number(number: int) -> tuple[PartitionId, int]:
    """The partition of a sequence number, and the counter within it."""
    if not 0 < number < 1 << 63:
        raise ValueError(f"{number} is no sequence number")
    return PartitionId(number >> limits.SEQUENCE_BITS), number & _LOCAL_MASK
