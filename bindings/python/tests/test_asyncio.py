"""The same rooms from asyncio."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import grouplock
import pytest
from conftest import LONG


def run(coroutine):
    asyncio.run(asyncio.wait_for(coroutine, LONG))


async def until(holds):
    while not holds():
        await asyncio.sleep(0.01)


def waiting(room):
    return [phase["session"] for phase in room.status()["waiting"]]


def test_tasks_share_and_wait():
    async def main():
        room = grouplock.Room("r")
        async with room.enter_async("a") as one, room.enter_async("a") as another:
            assert one.epoch == another.epoch
            with pytest.raises(grouplock.Timeout):
                await room.enter_async("b", timeout=0.05)
            with pytest.raises(grouplock.Occupied):
                await room.enter_async("b", timeout=0)
        (await room.enter_async("b")).leave()
        assert room.status()["inside"] is None

    run(main())


def test_a_task_that_is_cancelled_leaves_no_trace():
    async def main():
        room = grouplock.Room("r")

        async def enter():
            async with room.enter_async("b"):
                pytest.fail("it was cancelled before it could enter")

        with room.enter("a"):
            tasks = [asyncio.ensure_future(enter()) for _ in range(10)]
            await until(lambda: waiting(room) == ["b"])
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert all(task.cancelled() for task in tasks)
            assert waiting(room) == []
        room.enter("c", timeout=0).leave()

    run(main())


def test_many_tasks_of_three_sessions():
    async def main():
        room = grouplock.Room("r")
        inside = []

        async def work(session):
            for _ in range(10):
                async with room.enter_async(session):
                    inside.append(session)
                    await asyncio.sleep(0)
                    assert set(inside) == {session}, inside
                    inside.remove(session)

        await asyncio.gather(*(work("abc"[number % 3]) for number in range(12)))

    run(main())


def test_a_room_is_set_up_once_and_torn_down_by_the_last():
    async def main():
        room, told, inside = grouplock.Room("r"), [], []

        async def create():
            assert inside == [], "it is set up while somebody is inside"
            told.append("up")
            await asyncio.sleep(0.01)
            told.append("ready")

        def drop():
            assert inside == [], "it is torn down while somebody is inside"
            told.append("down")

        async def work(arrived):
            async with room.enter_async("a", set_up=create, tear_down=drop):
                assert told[-1] == "ready"
                inside.append("a")
                arrived.append("a")
                # All are inside together, or this never ends.
                await until(lambda: len(arrived) == 8)
                inside.remove("a")

        for _ in range(2):
            arrived = []
            await asyncio.gather(*(work(arrived) for _ in range(8)))
        assert told == ["up", "ready", "down"] * 2
        assert room.status()["inside"] is None

    run(main())


def test_what_a_set_up_by_a_task_raises_is_raised_and_the_next_one_tries_again():
    async def main():
        room, told = grouplock.Room("r"), []

        async def fail():
            await asyncio.sleep(0)
            1 / 0

        with pytest.raises(ZeroDivisionError):
            await room.enter_async("a", set_up=fail)
        assert room.status()["inside"] is None
        with room.enter("a", set_up=lambda: told.append("by a thread")):
            assert told == ["by a thread"]
        with pytest.raises(ZeroDivisionError):
            async with room.enter_async("a", tear_down=fail):
                pass
        assert room.status()["inside"] is None
        with pytest.raises(KeyError):
            async with room.enter_async("a", tear_down=fail):
                raise KeyError("what went wrong inside matters more")
        (await room.enter_async("a", set_up=lambda: told.append("again"))).leave()
        assert told == ["by a thread", "again"], "what was torn down is set up anew"

    run(main())


def test_a_task_that_is_cancelled_while_it_sets_up_leaves_the_room_to_the_next():
    async def main():
        room, begun, told = grouplock.Room("r"), asyncio.Event(), []

        async def endless():
            begun.set()
            await asyncio.sleep(1000)

        task = asyncio.ensure_future(room.enter_async("a", set_up=endless)._enter())
        await begun.wait()
        with pytest.raises(grouplock.Occupied):
            room.enter("a", timeout=0)
        with pytest.raises(grouplock.Timeout):
            await room.enter_async("a", set_up=endless, timeout=0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert room.status()["inside"] is None
        (await room.enter_async("a", set_up=lambda: told.append("up"), timeout=0)).leave()
        assert told == ["up"]

    run(main())


def test_a_tear_down_that_nobody_could_wait_for_is_refused():
    async def main():
        with pytest.raises(ValueError, match="needs `async with`"):
            await grouplock.Room("r").enter_async("a", tear_down=print)

    run(main())


def test_the_gateway_swaps_models_seldom():
    example = Path(__file__).parent.parent / "examples" / "gateway.py"
    said = subprocess.check_output([sys.executable, str(example), "60"], text=True, timeout=LONG)
    requests, swaps, most = (int(number) for number in re.findall(r"\b\d+\b", said)[:3])
    assert requests == 60 and 1 <= swaps < 60 and most > 1, said
