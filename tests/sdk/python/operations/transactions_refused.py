"""Transactions come later; until then they are refused in a way that harms nobody else."""

from sdk.python.place import AbsentFromSdk, Place


def run(place: Place) -> None:
    raise AbsentFromSdk("it has no transactions")
