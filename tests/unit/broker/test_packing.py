"""Commands as they go over the wire, against hiredis."""

import hiredis
import pytest

from partitionedqueue.broker.packing import packed


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 300])
def test_a_command_of_any_length_is_what_hiredis_makes_of_it(count: int) -> None:
    words = (
        "FCALL",
        *[(b"bytes\r\n" * place, "t\u00e9xt", place, -place, b"", "")[place % 6] for place in range(count - 1)],
    )
    assert b"".join(packed(words)) == hiredis.pack_command(words)  # type: ignore[arg-type]  # as in packing
