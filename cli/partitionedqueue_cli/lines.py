"""Messages as a person writes them: one body, or one message for each line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.message import Message
from partitionedqueue_cli.deliveries import TEXTS

_FIELDS = ("body", "properties", *TEXTS)


def from_lines(lines: Iterable[bytes], common: Mapping[str, Any]) -> Iterator[Message]:
    """Every line is a body. Raises InvalidMessage, naming the line."""
    for number, line in enumerate(lines, 1):
        with_body = {**common, "body": line.rstrip(b"\r\n")}
        yield _message(with_body, f"line {number}")


def from_json_lines(lines: Iterable[bytes], common: Mapping[str, Any]) -> Iterator[Message]:
    """Every line is a JSON object with `body` and whatever else it sets; `common` holds where it does not."""
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InvalidMessage(f"line {number} is no JSON: {error}") from error
        if not isinstance(value, dict) or not isinstance(value.get("body"), str):
            raise InvalidMessage(f'line {number} must be an object with a "body" that is text')
        for name in value:
            if name not in _FIELDS:
                raise InvalidMessage(
                    f'line {number} has an unknown field "{name}"; the fields are {", ".join(_FIELDS)}'
                )
        for name in TEXTS:
            if not isinstance(value.get(name, ""), str):
                raise InvalidMessage(f'line {number}: "{name}" must be text')
        properties = value.pop("properties", {})
        if not isinstance(properties, dict) or any(isinstance(one, dict | list) for one in properties.values()):
            raise InvalidMessage(f'line {number}: "properties" must be an object of plain values')
        merged = {**common.get("application_properties", {}), **properties}
        yield _message(
            {**common, **value, "body": value["body"].encode(), "application_properties": merged}, f"line {number}"
        )


def one_message(body: bytes, common: Mapping[str, Any]) -> Message:
    """A single message."""
    return Message(**{**common, "body": body})


def _message(fields: Mapping[str, Any], where: str) -> Message:
    try:
        message = Message(**fields)
        stored_message.encode(message)  # its size, before anything is sent
    except InvalidMessage as error:
        raise type(error)(f"{where}: {error}") from error
    return message
