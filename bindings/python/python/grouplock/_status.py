"""What a room looks like: the fields of `grouplock status --json`."""

from typing import Optional, TypedDict


class Recovered(TypedDict):
    """Somebody who died inside."""

    epoch: int
    session: str
    pid: int
    command: str


class Member(TypedDict):
    """Somebody inside, or waiting. Times are seconds since 1970, as of `time.time()`."""

    id: str
    pid: int
    host: str
    user: str
    command: str
    since: float
    priority: int
    expected_seconds: Optional[float]
    #: Whether it is, or wants to be, alone.
    alone: bool
    #: How many holders there may be while it is inside.
    at_most: Optional[int]


class Phase(TypedDict):
    """Those of one session that are inside together, or will be."""

    session: str
    members: list[Member]


class PastPhase(TypedDict):
    """A phase that is over."""

    session: str
    epoch: int
    began: float
    ended: float
    entries: int
    died: bool


class Status(TypedDict):
    """A room at a moment."""

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
