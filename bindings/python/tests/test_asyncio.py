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


def test_the_gateway_swaps_models_seldom():
    example = Path(__file__).parent.parent / "examples" / "gateway.py"
    said = subprocess.check_output([sys.executable, str(example), "60"], text=True, timeout=LONG)
    requests, swaps, most = (int(number) for number in re.findall(r"\b\d+\b", said)[:3])
    assert requests == 60 and 1 <= swaps < 60 and most > 1, said
