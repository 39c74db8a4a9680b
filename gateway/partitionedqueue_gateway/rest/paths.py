"""What paths of entities look like, for the rooms that answer for them."""

from typing import Final

ENTITY: Final = r"{path:(?!\$|api/v1/).*[^/]}"
"""A part of a route: whatever may be an entity's path, subscriptions and sub-queues too; none of what is reserved."""
