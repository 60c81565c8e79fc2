"""Processes share rooms. Holders of the same session are inside together, and other sessions wait.

>>> import grouplock, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> room = grouplock.Room("database", at=place.name)
>>> with room.enter("backup") as one, room.enter("backup") as another:
...     one.epoch == another.epoch
True
>>> with room.enter("backup"):
...     room.enter("migration", timeout=0)
Traceback (most recent call last):
    ...
grouplock._errors.Occupied: the room is occupied by the session `backup`

A room lives in a directory of this machine, on etcd (`at="etcd://host:2379"`) or on a GBP cluster
(`at="gbp://host:7100"`). The default is that of the program `grouplock`: `GROUPLOCK_AT` if it is set.
Otherwise it is `/run/lock/grouplock-UID` (`/tmp/grouplock-UID` on machines where not every user may
write to `/run/lock`), and `/run/grouplock` for root.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Generator, Optional, Union

from ._errors import Error, Forked, Invalid, Lost, NoSuchRoom, Occupied, Timeout, Unreachable
from ._how import How
from ._native import Inside, remove, rooms
from ._native import Room as _Room
from ._native import version as __version__
from ._status import Member, PastPhase, Phase, Recovered, Status

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Entry",
    "Error",
    "Forked",
    "Inside",
    "Invalid",
    "Lost",
    "Member",
    "NoSuchRoom",
    "Occupied",
    "PastPhase",
    "Phase",
    "Recovered",
    "Room",
    "Status",
    "Timeout",
    "Unreachable",
    "remove",
    "rooms",
]


class Room:
    """A named room. Any number of threads and tasks can use it. It can be pickled: the other process
    opens it again.

    `policy` is the order of admission: "fifo", "batch:PASSES" or "priority:AGING". A new room gets it
    (the default is "fifo"). An existing room must have it. With `existing`, a missing room is an error
    and is not created. With `group`, the group of a new room's file may use it. `label` is the text
    that others see instead of the command line.
    """

    def __init__(
        self,
        name: str,
        at: Union[str, os.PathLike[str], None] = None,
        *,
        policy: Optional[str] = None,
        existing: bool = False,
        group: bool = False,
        label: Optional[str] = None,
    ) -> None:
        self._native = _Room(name, at, policy, existing, group, label)
        self._options = {"policy": policy, "existing": existing, "group": group, "label": label}
        #: The name of the room.
        self.name = name
        #: The place of the room, as text.
        self.at = self._native.at

    def enter(
        self,
        session: str,
        *,
        timeout: Optional[float] = None,
        priority: int = 0,
        expected: Optional[float] = None,
        at_most: Optional[int] = None,
        set_up: Optional[Callable[[], Any]] = None,
        tear_down: Optional[Callable[[], Any]] = None,
    ) -> Inside:
        """Enters, and waits while another session is inside. To leave, use `with` or `leave()`.

        Raises `Timeout` after `timeout` seconds. 0 does not wait at all. `priority` matters in rooms
        with the policy "priority": larger numbers go first. `expected` is how many seconds the holder
        will probably stay inside, which waiters can see. `at_most` is the largest number of holders,
        this one included. Other threads run while this one waits, and Ctrl-C ends the wait.

        If the room is not set up for the session, `set_up` is called, alone, before other requests of
        the session enter. If this holder leaves as the last one, `tear_down` is called. This call
        raises what `set_up` raises, and leaving raises what `tear_down` raises. The room is left
        then. This call raises `Invalid` if the place does not support this.

        >>> import tempfile
        >>> place = tempfile.TemporaryDirectory()
        >>> room = Room("database", at=place.name)
        >>> for _ in range(2):
        ...     with room.enter("schema 41", set_up=lambda: print("created")):
        ...         print("used")
        created
        used
        used
        """
        how = How(timeout, priority, expected, False, at_most)
        if set_up is None and tear_down is None:
            return self._native.enter(session, how)
        if any(map(inspect.iscoroutinefunction, (set_up, tear_down))):
            raise Invalid("a set_up or tear_down that is a coroutine function needs `enter_async`")
        return self._native.enter_prepared(session, how, set_up, tear_down)

    def exclusive(
        self,
        session: str = "",
        *,
        timeout: Optional[float] = None,
        priority: int = 0,
        expected: Optional[float] = None,
    ) -> Inside:
        """Enters alone: no other holder is inside, not even of the same session."""
        return self._native.enter(session, How(timeout, priority, expected, True))

    def enter_async(
        self,
        session: str,
        *,
        timeout: Optional[float] = None,
        priority: int = 0,
        expected: Optional[float] = None,
        at_most: Optional[int] = None,
        set_up: Optional[Callable[[], Any]] = None,
        tear_down: Optional[Callable[[], Any]] = None,
    ) -> Entry:
        """The same as `enter` for asyncio: `async with room.enter_async("model A") as inside: …`, or
        `await` it.

        Cancelling the task while it waits withdraws the request. `set_up` and `tear_down` may be
        coroutine functions. If the task is cancelled during the set-up, the room is not set up, and the
        next request tries. A `tear_down` needs `async with`.
        """
        how = How(timeout, priority, expected, False, at_most)
        return Entry(self._native, session, how, set_up, tear_down)

    def exclusive_async(
        self,
        session: str = "",
        *,
        timeout: Optional[float] = None,
        priority: int = 0,
        expected: Optional[float] = None,
    ) -> Entry:
        """The same as `exclusive` for asyncio."""
        return Entry(self._native, session, How(timeout, priority, expected, True))

    def status(self) -> Status:
        """The holders, the waiters and past phases, with the fields of `grouplock status --json`.

        >>> import tempfile
        >>> place = tempfile.TemporaryDirectory()
        >>> room = Room("gpu0", at=place.name)
        >>> with room.enter("model A"):
        ...     room.status()["inside"]["session"]
        'model A'
        """
        status: Status = json.loads(self._native.status())
        return status

    def __reduce__(self) -> Any:
        return _reopened, (self.name, self.at, self._options)

    def __repr__(self) -> str:
        return f"grouplock.Room({self.name!r}, at={self.at!r})"


def _reopened(name: str, at: str, options: dict[str, Any]) -> Room:
    return Room(name, at, **options)


class Entry:
    """An entry with asyncio that has not begun. Use it once, with `async with` or `await`."""

    def __init__(
        self,
        room: _Room,
        session: str,
        how: How,
        set_up: Optional[Callable[[], Any]] = None,
        tear_down: Optional[Callable[[], Any]] = None,
    ) -> None:
        self._room = room
        self._session = session
        self._how = how
        self._set_up = set_up
        self._tear_down = tear_down
        self._inside: Optional[Inside] = None

    def __await__(self) -> Generator[Any, None, Inside]:
        if self._tear_down is not None:
            raise Invalid("a tear_down needs `async with`: `leave` could not wait for it")
        return self._enter().__await__()

    async def _enter(self) -> Inside:
        began = time.monotonic()
        inside = await self._ask(self._how)
        if self._set_up is None or inside._prepared() == self._session:
            return inside
        # It is not set up. Enters again, alone, and sets it up unless another holder has done so meanwhile.
        inside.leave()
        timeout = self._how.timeout
        if timeout is not None:
            timeout = max(0.0, began + timeout - time.monotonic())
        inside = await self._ask(self._how._replace(alone=True, timeout=timeout))
        try:
            if inside._prepared() != self._session:
                # First: if the set-up does not finish, the room is not set up.
                inside._set_prepared(None)
                await _called(self._set_up)
                inside._set_prepared(self._session)
            inside._downgrade()
        except BaseException:
            inside.leave()
            raise
        return inside

    async def _ask(self, how: How) -> Inside:
        loop = asyncio.get_running_loop()
        prepared = self._set_up is not None or self._tear_down is not None
        entering = self._room.begin(self._session, how, prepared)
        try:
            while True:
                woken = asyncio.Event()
                inside = entering.poll(lambda: loop.call_soon_threadsafe(woken.set))
                if inside is not None:
                    return inside
                await woken.wait()
        finally:
            # If the task was cancelled. After the request was admitted, this does nothing.
            entering.withdraw()

    async def __aenter__(self) -> Inside:
        self._inside = await self._enter()
        return self._inside

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        inside, self._inside = self._inside, None
        if inside is None:
            return
        if not self._room.remote:
            try:
                if self._tear_down is not None and inside.held and inside._try_alone():
                    inside._set_prepared(None)
                    await _called(self._tear_down)
            except Exception:
                # The error inside matters more.
                if kind is None:
                    raise
            finally:
                inside.__exit__(kind, value, traceback)
            return
        # Servers need time to answer. The room is left even if the task is cancelled.
        leaving = asyncio.get_running_loop().run_in_executor(
            None, inside.__exit__, kind, value, traceback
        )
        await asyncio.shield(leaving)


async def _called(function: Callable[[], Any]) -> None:
    """Calls a function. Waits for the result if it is a coroutine function."""
    result = function()
    if inspect.isawaitable(result):
        await result
