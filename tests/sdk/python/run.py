"""Runs operations on azure-servicebus: each line of standard input asks for one, each line of output tells of it."""

import importlib
import json
import sys
import time
import traceback
from typing import Any

from sdk.python.place import AbsentFromSdk, Place


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(done(json.loads(line))), flush=True)  # noqa: T201 - this is what is asked for


def done(asked: dict[str, Any]) -> dict[str, object]:
    """How one operation went."""
    began = time.monotonic()
    outcome, said = "passed", ""
    try:
        folder, _, name = asked["operation"].rpartition(".")
        operation = importlib.import_module(f"sdk.python.{folder or 'operations'}.{name}")
        operation.run(Place(**asked["place"]))
    except AbsentFromSdk as absent:
        outcome, said = "absent", str(absent)
    except Exception:  # noqa: BLE001 - whatever it is, it is told
        outcome, said = "failed", traceback.format_exc()
    return {"outcome": outcome, "said": said, "seconds": round(time.monotonic() - began, 3)}


if __name__ == "__main__":
    main()
