import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model import durations


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("PT0S", 0),
        ("PT1M", 60_000),
        ("PT1.5S", 1_500),
        ("PT0.0004S", 0),
        ("P1DT2H3M4.005S", 93_784_005),
        ("P14D", 14 * 86_400_000),
        ("P10675199DT2H48M5.4775807S", 922_337_203_685_477),  # .NET's TimeSpan.MaxValue
    ],
)
def test_durations_are_read(text: str, length_ms: int) -> None:
    assert durations.milliseconds(text) == length_ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1m", "P1Y", "P1M", "P1W", "-P1D", "PT.5S", "PT1.S", "PT1S\n", "PT\u0661S"]
)
def test_what_is_no_duration_is_not_read(text: str) -> None:
    assert durations.milliseconds(text) is None


@given(st.integers(0, 10**14))
def test_a_length_written_is_read_as_itself(length_ms: int) -> None:
    assert durations.milliseconds(durations.text(length_ms)) == length_ms


def test_lengths_are_written_as_a_person_would() -> None:
    lengths = 0, 500, 5_000, 300_000, 7 * 86_400_000, 90_061_000
    assert [durations.text(one) for one in lengths] == ["PT0S", "PT0.5S", "PT5S", "PT5M", "P7D", "P1DT1H1M1S"]
