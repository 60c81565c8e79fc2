"""The same lines with rooms on etcd and on a GBP cluster."""

import asyncio

import grouplock
import pytest
from conftest import LONG


@pytest.mark.parametrize("place", ["etcd", "gbp"])
def test_rooms_on_servers(place, request):
    at = request.getfixturevalue(place)
    room = grouplock.Room("gpu0", at=at)
    with room.enter("model A", timeout=LONG) as one, room.enter("model A") as another:
        assert one.epoch == another.epoch and one.held
        with pytest.raises(grouplock.Timeout):
            room.enter("model B", timeout=0.2)
        assert room.status()["inside"]["session"] == "model A"

    async def main():
        async with room.enter_async("model B", timeout=LONG) as inside:
            assert inside.epoch > one.epoch
            inside.check()

    asyncio.run(main())
    assert grouplock.rooms(at) == ["gpu0"]
    with room.enter("model C", timeout=LONG):
        assert room.status()["inside"]["session"] == "model C"


@pytest.mark.parametrize("place", ["etcd", "gbp"])
def test_servers_refuse_to_set_a_room_up(place, request):
    room = grouplock.Room("gpu1", at=request.getfixturevalue(place))

    async def main():
        async with room.enter_async("model A", set_up=pytest.fail):
            pass

    # At once, not after a wait: another session is inside.
    with room.enter("model B", timeout=LONG):
        with pytest.raises(grouplock.Invalid) as refused:
            asyncio.run(main())
        with pytest.raises(grouplock.Invalid) as too:
            room.enter("model A", set_up=pytest.fail)
    assert str(refused.value) == str(too.value) == f"{place} rooms cannot do this: set-up and tear-down"


@pytest.mark.parametrize("place", ["etcd", "gbp"])
def test_servers_refuse_a_policy_that_they_do_not_have(place, request):
    at = request.getfixturevalue(place)
    with pytest.raises(grouplock.Invalid, match=f"{place} rooms cannot do this: the policy batch:20; .* fifo"):
        grouplock.Room("gpu2", at=at, policy="batch:20")


def test_a_room_on_servers_is_removed_if_they_can(etcd, gbp):
    for at in (etcd, gbp):
        grouplock.Room("gone", at=at).enter("a", timeout=LONG).leave()
    grouplock.remove("gone", etcd)
    assert "gone" not in grouplock.rooms(etcd)
    with pytest.raises(grouplock.Invalid, match="cannot do this: removing a room"):
        grouplock.remove("gone", gbp)


def test_gbp_refuses_to_let_anybody_be_alone(gbp):
    with pytest.raises(grouplock.Invalid, match="gbp rooms cannot do this: being alone"):
        grouplock.Room("gpu3", at=gbp).exclusive()


def test_servers_that_are_not_there_are_a_connection_error():
    with pytest.raises(ConnectionError, match="cannot be reached"):
        grouplock.Room("r", at="etcd://127.0.0.1:1").enter("a", timeout=5)
