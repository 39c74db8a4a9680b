"""What every benchmark stands on: servers of its own, one driver for all sides, rounds that take turns.

Nothing here knows a question. What is timed never contains the making of a command or the reading of a reply's meaning.
"""
