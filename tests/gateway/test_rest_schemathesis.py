"""Requests made up from the description, against a gateway: what is answered is described, and never a defect."""

import re
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    status_code_conformance,
)

from harness.gateway_process import Gateway

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance]
ENTITIES = ["letters", "letters/$DeadLetterQueue", "nowhere", "LETTERS", "default/letters"]
OPERATIONS = ["send", "peekLock", "receiveAndDelete", "complete", "abandon", "renewLock"]
EXAMPLES = 15
SECONDS = 10


def description(gateway: Gateway) -> Any:
    """As the gateway gives it, for this queue."""
    status, text = gateway.get("/$openapi")
    assert status == 200
    described = yaml.safe_load(text)
    described["components"]["parameters"]["entity"]["schema"]["enum"] = ENTITIES
    return described


def hurry(case: Case[Any]) -> None:
    """No longer waits than a test has time for, unless what is said of it makes no sense."""
    given_s = case.query.get("timeout")
    if given_s is None or re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(given_s)):
        case.query["timeout"] = 0


@pytest.mark.parametrize("operation_id", OPERATIONS)
@pytest.mark.parametrize("mode", [*GenerationMode], ids=lambda mode: mode.value)
def test_what_is_answered_is_described(gateway: Gateway, operation_id: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(description(gateway))
    schema.config.update(base_url=f"http://127.0.0.1:{gateway.port}")
    operation = schema.find_operation_by_id(operation_id)

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[*HealthCheck],
    )
    def holds(case: Case[Any]) -> None:
        hurry(case)
        case.call_and_validate(checks=CHECKS, timeout=SECONDS)

    holds()
