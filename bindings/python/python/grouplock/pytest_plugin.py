"""A marker for pytest that runs a test inside a room.

    @pytest.mark.room("database", "schema 41")
    def test_with_schema_41(): ...

Tests of the same session run together, also in the workers of pytest-xdist and in other runs of the same
user on the machine. Tests of another session wait. The fixture `inside` is the holding. The marker has the options
of `grouplock.Room` (`at`, `policy`) and of `enter` (`timeout`, `priority`).
"""

from __future__ import annotations

import contextlib
from typing import Any, Generator

import pytest

import grouplock

_STACK = pytest.StashKey[contextlib.ExitStack]()
_INSIDE = pytest.StashKey[dict[str, grouplock.Inside]]()
_OF_ROOM = {"at", "policy", "existing", "group", "label"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("grouplock_at", "where the rooms of the marker `room` live", default=None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "room(name, session, **options): run the test inside this session of this room (grouplock)",
    )


def _wanted(item: pytest.Item) -> dict[str, tuple[str, dict[str, Any]]]:
    """The session and the options, by room. The marker that is nearest to the test counts."""
    wanted: dict[str, tuple[str, dict[str, Any]]] = {}
    for marker in item.iter_markers("room"):
        if len(marker.args) != 2:
            raise pytest.UsageError('@pytest.mark.room("ROOM", "SESSION") needs a room and a session')
        name, session = marker.args
        wanted.setdefault(name, (session, dict(marker.kwargs)))
    return wanted


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Before the fixtures.
    stack = contextlib.ExitStack()
    item.stash[_STACK] = stack
    item.stash[_INSIDE] = inside = {}
    # All tests enter rooms in the same order. So two tests do not wait for each other.
    for name, (session, options) in sorted(_wanted(item).items()):
        of_room = {key: value for key, value in options.items() if key in _OF_ROOM}
        of_entry = {key: value for key, value in options.items() if key not in _OF_ROOM}
        of_room.setdefault("at", item.config.getini("grouplock_at") or None)
        of_room.setdefault("label", item.nodeid)
        room = grouplock.Room(name, **of_room)
        inside[name] = stack.enter_context(room.enter(session, **of_entry))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    finally:
        # After the fixtures of the test have ended. Fixtures of a module or a session continue without the room.
        item.stash[_STACK].close()


@pytest.fixture
def inside(request: pytest.FixtureRequest) -> Any:
    """The holding of a test with one marker `room`; with several markers, a dictionary by room."""
    holdings = request.node.stash[_INSIDE]
    return next(iter(holdings.values())) if len(holdings) == 1 else holdings
