"""The state of a room: the fields of `grouplock status --json`."""

from typing import Optional, TypedDict


class Recovered(TypedDict):
    """A death inside."""

    epoch: int
    session: str
    pid: int
    command: str


class Member(TypedDict):
    """A holder or a waiter. Times are seconds since 1970, as from `time.time()`."""

    id: str
    pid: int
    host: str
    user: str
    command: str
    since: float
    priority: int
    expected_seconds: Optional[float]
    #: Whether it is alone, or asks to be alone.
    alone: bool
    #: The largest number of holders while it is inside.
    at_most: Optional[int]


class Phase(TypedDict):
    """Participants of one session that are inside together, or will be."""

    session: str
    members: list[Member]


class PastPhase(TypedDict):
    """A past phase."""

    session: str
    epoch: int
    began: float
    ended: float
    entries: int
    died: bool


class Status(TypedDict):
    """A room at one moment."""

    room: str
    policy: str
    epoch: int
    inside: Optional[Phase]
    waiting: list[Phase]
    recent: list[PastPhase]
    deaths: int
    taken: float
    exact: bool
    unanswered: list[str]
