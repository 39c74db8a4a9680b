"""Everything that Microsoft's SDKs document of queues, on the unmodified SDKs, against the embedded namespace."""

import pytest

from sdk.lanes import WAIT_SECONDS, Lanes
from sdk.matrix import OUTCOME
from sdk.operations import SDKS, operations
from sdk.programs import SdkNotHere

_ASKED = [(each.name, kind, sdk) for each in operations() for kind in each.kinds for sdk in SDKS]


@pytest.mark.timeout(WAIT_SECONDS)
@pytest.mark.parametrize(("operation", "kind", "sdk"), _ASKED, ids=["-".join(asked) for asked in _ASKED])
def test_operation(operation: str, kind: str, sdk: str, lanes: Lanes, record_property: object) -> None:
    assert callable(record_property)
    try:
        outcome = lanes.outcome((operation, kind, sdk))
    except SdkNotHere as error:
        pytest.skip(str(error))
    record_property(OUTCOME, [operation, kind, sdk, outcome.outcome])
    assert outcome.outcome in {"passed", "absent"}, outcome.said
