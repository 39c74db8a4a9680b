"""An abandoned message may be given changed properties."""

from sdk.python.place import AbsentFromSdk, Place


def run(place: Place) -> None:
    raise AbsentFromSdk("abandon_message takes no properties")
