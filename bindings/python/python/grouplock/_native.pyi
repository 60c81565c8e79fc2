import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Optional, Union, final

from ._how import How
from ._status import Recovered

__all__ = ["Entering", "Inside", "Room", "remove", "rooms", "version"]

version: str

_Path = Union[str, "os.PathLike[str]"]

@final
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

@final
class Entering:
    def poll(self, wake: Callable[[], Any]) -> Optional[Inside]: ...
    def withdraw(self) -> None: ...

@final
class Room:
    def __new__(
        cls,
        name: str,
        at: Optional[_Path],
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
    def status(self) -> str: ...

def rooms(at: Optional[_Path] = None) -> list[str]: ...
def remove(name: str, at: Optional[_Path] = None) -> None: ...
