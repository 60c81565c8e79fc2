import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Optional, TypedDict, Union

from ._how import How

Path = Union[str, "os.PathLike[str]"]

class Recovered(TypedDict):
    epoch: int
    session: str
    pid: int
    command: str

class Member(TypedDict):
    id: str
    pid: int
    host: str
    user: str
    command: str
    since: float
    priority: int
    expected_seconds: Optional[float]

class Phase(TypedDict):
    session: str
    members: list[Member]

class PastPhase(TypedDict):
    session: str
    epoch: int
    began: float
    ended: float
    entries: int
    died: bool

class Status(TypedDict):
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

class Inside:
    session: str
    epoch: int
    holder: str
    @property
    def held(self) -> bool: ...
    @property
    def recovered(self) -> Optional[Recovered]: ...
    def check(self) -> None: ...
    def acknowledge(self) -> None: ...
    def leave(self) -> None: ...
    def _prepared(self) -> Optional[str]: ...
    def _set_prepared(self, session: Optional[str]) -> None: ...
    def _downgrade(self) -> None: ...
    def _try_alone(self) -> bool: ...
    def __enter__(self) -> Inside: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> bool: ...

class Entering:
    def poll(self, wake: Callable[[], Any]) -> Optional[Inside]: ...
    def withdraw(self) -> None: ...

class Room:
    def __new__(
        cls,
        name: str,
        at: Optional[Path],
        policy: Optional[str],
        existing: bool,
        group: bool,
        label: Optional[str],
    ) -> Room: ...
    at: str
    remote: bool
    def enter(self, session: str, how: How) -> Inside: ...
    def enter_prepared(
        self,
        session: str,
        how: How,
        set_up: Optional[Callable[[], Any]],
        tear_down: Optional[Callable[[], Any]],
    ) -> Inside: ...
    def begin(self, session: str, how: How, prepared: bool) -> Entering: ...
    def status(self) -> Status: ...

def rooms(at: Optional[Path] = None) -> list[str]: ...
def remove(name: str, at: Optional[Path] = None) -> None: ...
