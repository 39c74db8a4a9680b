"""Options of the sink, parsed once at the door."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from partitionedqueue.broker.access import SPARK_SENDER
from partitionedqueue_spark.connection import (
    CONNECTION,
    PASSWORD_VARIABLE,
    Connection,
    InvalidOption,
    by_name,
    connection_of,
    one_of,
    truth,
)

KNOWN: Final = (*CONNECTION, "messageId", "writeId", "ignoreUnknownColumns")
SPARKS_OWN: Final = ("checkpointLocation", "queryName")  # Spark hands a stream's own options on to its sink
SENDER_PASSWORD_VARIABLE: Final = "PQ_SENDER_PASSWORD"  # noqa: S105 -- its name; a job that reads, too, has two passwords
DERIVED: Final = "derived"
NONE: Final = "none"
WRITE_ID_CHARACTERS_MAX: Final = 1_024  # it is hashed; longer ones are a mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions(Connection):
    """What a writer needs to know; valid."""

    derives_message_ids: bool = True
    write_id: str | None = None
    ignore_unknown_columns: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> Self:
        """Read Spark's options, and the password from the environment if it is not among them.

        Raises InvalidOption, with the option's name in it.
        """
        sparks = {name.lower() for name in SPARKS_OWN}
        given = by_name({name: value for name, value in options.items() if name.lower() not in sparks}, KNOWN)
        password = environment.get(SENDER_PASSWORD_VARIABLE)
        fields = connection_of(given, {} if password is None else {PASSWORD_VARIABLE: password})
        fields["username"] = given.get("username", SPARK_SENDER if "namespace" in given else None)
        if "/$" in fields["queue"]:  # a slash alone is part of a name
            raise InvalidOption(f"option 'queue' is '{fields['queue']}': what is in a sub-queue comes there by itself")
        write_id = given.get("writeId")
        if write_id is not None and not 0 < len(write_id) <= WRITE_ID_CHARACTERS_MAX:
            raise InvalidOption(
                f"option 'writeId' has {len(write_id)} characters; 1 to {WRITE_ID_CHARACTERS_MAX} it has"
            )
        return cls(
            **fields,
            derives_message_ids=one_of("messageId", given.get("messageId", DERIVED), (DERIVED, NONE)) == DERIVED,
            write_id=write_id,
            ignore_unknown_columns=truth("ignoreUnknownColumns", given.get("ignoreUnknownColumns", "false")),
        )
