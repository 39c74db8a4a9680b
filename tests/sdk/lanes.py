"""Which operations run beside each other: a lane does its operations one after the other, on queues of its own."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from sdk.namespace import SdkNamespace, Sweeper
from sdk.operations import KINDS, SDKS
from sdk.programs import Outcome, Program, sdk

Asked = tuple[str, str, str]  # operation, kind, SDK
WAIT_SECONDS: Final = 900.0


class Lanes:
    """Begins at once with all that is asked; `outcome` waits for one."""

    def __init__(self, namespace: SdkNamespace, asked: Iterable[Asked], folder: Path) -> None:
        self._namespace = namespace
        self._folder = folder
        self._outcomes: dict[Asked, Future[Outcome]] = {one: Future() for one in asked}
        self._ending = threading.Event()
        lanes = [[(kind, name)] for kind in KINDS if kind != "wide" for name in SDKS]
        lanes.append([("wide", name) for name in SDKS])  # whose brokers they share
        self._threads = [threading.Thread(target=self._lane, args=(lane,), daemon=True) for lane in lanes]
        for thread in self._threads:
            thread.start()

    def outcome(self, asked: Asked) -> Outcome:
        """Raises SdkNotHere."""
        return self._outcomes[asked].result(WAIT_SECONDS)

    def end(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _lane(self, lane: list[tuple[str, str]]) -> None:
        for kind, name in lane:
            asked = [one for one in self._outcomes if one[1:] == (kind, name)]
            try:
                if asked:
                    self._run(kind, name, asked)
            except Exception as error:  # noqa: BLE001 - whoever waits for an outcome gets it
                for one in asked:
                    if not self._outcomes[one].done():
                        self._outcomes[one].set_exception(error)

    def _run(self, kind: str, name: str, asked: list[Asked]) -> None:
        program = Program(sdk(name), self._folder / f"{name}-{kind}.log")
        place = self._namespace.place(name, kind)
        sweeper = Sweeper(self._namespace, sorted({str(place[role]) for role in ("queue", "brief", "sessions")}))
        try:
            for one in asked:
                if self._ending.is_set():
                    return
                sweeper.empty()
                self._outcomes[one].set_result(program.run(one[0], place))
        finally:
            sweeper.close()
            program.end()
