"""The options of an entry, as the native part needs them."""

from typing import NamedTuple, Optional


class How(NamedTuple):
    timeout: Optional[float] = None
    priority: int = 0
    expected: Optional[float] = None
    alone: bool = False
    at_most: Optional[int] = None
