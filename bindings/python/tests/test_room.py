"""Rooms in a directory: sharing, waiting, errors, threads, signals, forks and deaths."""

import json
import os
import pickle
import signal
import subprocess
import threading
import time

import grouplock
import pytest
from conftest import LONG, PROGRAM, until


def waiting(room):
    return [phase["session"] for phase in room.status()["waiting"]]


def test_the_same_session_shares_and_another_waits():
    room = grouplock.Room("r")
    with room.enter("a") as one, room.enter("a") as another:
        assert one.epoch == another.epoch and one.held
        with pytest.raises(grouplock.Occupied, match="occupied by the session `a`"):
            room.enter("b", timeout=0)
    assert not one.held
    with room.enter("b") as other:
        assert other.epoch > one.epoch and other.session == "b"


def test_a_timeout_is_pythons_too():
    room = grouplock.Room("r")
    with room.enter("a"):
        with pytest.raises(TimeoutError, match="not admitted within") as caught:
            room.enter("b", timeout=0.05)
        assert isinstance(caught.value, grouplock.Timeout)
    assert waiting(room) == []


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(timeout):
    with pytest.raises(ValueError, match="seconds were expected"):
        grouplock.Room("r").enter("a", timeout=timeout)


def test_errors_have_the_words_of_the_program(tmp_path):
    with pytest.raises(grouplock.Invalid, match="cannot be the name of a room: it is empty"):
        grouplock.Room("")
    with pytest.raises(ValueError, match="expected host:port after"):
        grouplock.Room("r", at="etcd://host")
    with pytest.raises(grouplock.NoSuchRoom, match="there is no room `r`"):
        grouplock.Room("r", existing=True)
    grouplock.Room("r", policy="batch:3")
    with pytest.raises(grouplock.Invalid, match="the room has the policy"):
        grouplock.Room("r", policy="fifo")


def test_other_threads_run_while_one_waits():
    room = grouplock.Room("r")
    outer = room.enter("a")
    entered = threading.Event()

    def other():
        with room.enter("b"):
            entered.set()

    thread = threading.Thread(target=other)
    thread.start()
    until("it waits", lambda: waiting(room) == ["b"])
    assert not entered.is_set()
    outer.leave()
    outer.leave()  # a second time does nothing
    assert entered.wait(LONG)
    thread.join(LONG)


def test_an_exception_inside_leaves_the_room_and_goes_on():
    room = grouplock.Room("r")
    with pytest.raises(ZeroDivisionError):
        with room.enter("a"):
            1 / 0
    assert room.status()["inside"] is None


def test_what_nobody_refers_to_is_left():
    room = grouplock.Room("r")
    room.enter("a")
    room.enter("b", timeout=0).leave()


def test_ctrl_c_ends_a_wait(python):
    room = grouplock.Room("r")
    with room.enter("a"):
        other = python("grouplock.Room('r').enter('b')")
        until("it waits", lambda: waiting(room) == ["b"])
        other.process.send_signal(signal.SIGINT)
        code, _, err = other.end()
        assert "KeyboardInterrupt" in err and code != 0
        assert waiting(room) == []


def test_use_after_fork_is_refused_and_the_parent_still_holds():
    room = grouplock.Room("r")
    with room.enter("a") as inside:
        child = os.fork()
        if child == 0:
            try:
                room.enter("a", timeout=0)
            except grouplock.Forked:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert inside.held
        with pytest.raises(grouplock.Occupied):
            grouplock.Room("r").enter("b", timeout=0)


def test_a_death_inside_is_noticed(python):
    room = grouplock.Room("r")
    other = python("inside = grouplock.Room('r').enter('a'); print('in', flush=True); time.sleep(1000)")
    assert other.line() == "in"
    other.process.kill()
    with room.enter("b", timeout=LONG) as inside:
        assert inside.recovered["session"] == "a"
        assert inside.recovered["pid"] == other.process.pid


def test_a_repaired_death_is_not_reported_again(python):
    room = grouplock.Room("r")
    other = python("inside = grouplock.Room('r').enter('a'); print('in', flush=True); time.sleep(1000)")
    assert other.line() == "in"
    other.process.kill()
    with room.enter("b", timeout=LONG) as inside:
        assert inside.recovered is not None
        inside.acknowledge()
    with room.enter("c") as inside:
        assert inside.recovered is None


def test_status_says_what_the_program_says():
    room = grouplock.Room("r", label="the test")
    with room.enter("a", expected=5) as inside:
        status = room.status()
        member = status["inside"]["members"][0]
        assert (member["pid"], member["command"]) == (os.getpid(), "the test")
        assert (member["id"], member["expected_seconds"]) == (inside.holder, 5.0)
        shown = subprocess.check_output([PROGRAM, "status", "r", "--json"], timeout=LONG)
        shown = json.loads(shown)
        assert shown.keys() == status.keys()
        assert shown["inside"] == status["inside"]
        assert status["policy"] == "fifo" and abs(status["taken"] - time.time()) < LONG
        assert set(member) == set(grouplock.Member.__annotations__)
        assert set(status) == set(grouplock.Status.__annotations__)
    with room.enter("b", at_most=2), room.enter("b"):
        limits = [(it["at_most"], it["alone"]) for it in room.status()["inside"]["members"]]
        assert limits == [(2, False), (None, False)]
        assert set(room.status()["recent"][0]) == set(grouplock.PastPhase.__annotations__)
    with room.exclusive():
        assert room.status()["inside"]["members"][0]["alone"]


def test_a_room_that_is_pickled_is_the_same_room():
    room = grouplock.Room("r", policy="batch:3")
    again = pickle.loads(pickle.dumps(room))
    with room.enter("a"), pytest.raises(grouplock.Occupied):
        again.enter("b", timeout=0)


def test_rooms_are_listed_and_removed():
    assert grouplock.rooms() == []
    room = grouplock.Room("r")
    with room.enter("a"):
        assert grouplock.rooms() == ["r"]
        with pytest.raises(grouplock.Error, match="in use"):
            grouplock.remove("r")
    grouplock.remove("r")
    assert grouplock.rooms() == []


STORM = """
import os, random
folder, session = sys.argv[1:]
room = grouplock.Room("r")
for number in range(200):
    with room.enter(session):
        mine = f"{session}-{os.getpid()}"
        open(os.path.join(folder, mine), "w").close()
        inside = os.listdir(folder)
        assert all(name.startswith(session) for name in inside), inside
        os.unlink(os.path.join(folder, mine))
"""


def test_a_storm_of_interpreters_of_which_some_are_killed(python, tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    # Those that are killed do not write into the folder: they could not clean up.
    victims = [
        python("room = grouplock.Room('r')\nwhile True:\n    room.enter('x').leave()")
        for _ in range(2)
    ]
    others = [python(STORM, folder, session) for session in ["a", "a", "b", "c"]]
    room = grouplock.Room("r")
    until("victims are there", lambda: any(p["session"] == "x" for p in room.status()["recent"]))
    for victim in victims:
        victim.process.kill()
    for other in others:
        code, _, err = other.end()
        assert code == 0, err
    assert room.status()["inside"] is None and waiting(room) == []


def test_alone_means_alone():
    room = grouplock.Room("r")
    with room.exclusive("a") as inside:
        assert inside.session == "a"
        with pytest.raises(grouplock.Occupied):
            room.enter("a", timeout=0)
    with room.enter("a"), pytest.raises(grouplock.Occupied):
        room.exclusive("a", timeout=0)


def test_there_are_at_most_so_many():
    room = grouplock.Room("r")
    with room.enter("a", at_most=2), room.enter("a", at_most=2):
        with pytest.raises(grouplock.Timeout):
            room.enter("a", at_most=2, timeout=0)
    for number in [0, -1, 2**40]:
        with pytest.raises(ValueError, match="1 or more was expected"):
            room.enter("a", at_most=number)


def test_set_up_once_and_tear_down_by_the_last():
    room, told = grouplock.Room("r"), []
    prepared = {"set_up": lambda: told.append("up"), "tear_down": lambda: told.append("down")}
    with room.enter("a", **prepared):
        with room.enter("a", **prepared):
            assert told == ["up"]
        assert told == ["up"], "somebody is still inside"
    assert told == ["up", "down"]
    with room.enter("a", **prepared):
        assert told == ["up", "down", "up"], "it was torn down before"


def test_what_a_set_up_raises_is_raised_and_the_next_one_tries_again():
    room = grouplock.Room("r")
    with pytest.raises(ZeroDivisionError):
        room.enter("a", set_up=lambda: 1 / 0)
    assert room.status()["inside"] is None
    done = []
    with room.enter("a", set_up=lambda: done.append("up")):
        assert done == ["up"]
    inside = room.enter("a", tear_down=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        inside.leave()
    assert room.status()["inside"] is None


def test_ctrl_c_ends_a_wait_for_a_room_to_be_set_up(python):
    room = grouplock.Room("r")
    with room.enter("a"):
        other = python("grouplock.Room('r').enter('b', set_up=print)")
        until("it waits", lambda: waiting(room) == ["b"])
        other.process.send_signal(signal.SIGINT)
        code, out, err = other.end()
        assert "KeyboardInterrupt" in err and code != 0 and out == ""
        assert waiting(room) == []


def test_what_was_left_cannot_be_used_again():
    inside = grouplock.Room("r").enter("a")
    with inside:
        inside.check()
    with pytest.raises(grouplock.Error, match="the room was left"):
        with inside:
            pytest.fail("others may be inside")
    with pytest.raises(grouplock.Error, match="the room was left"):
        inside.check()


def test_a_coroutine_function_does_not_set_a_room_up_without_asyncio():
    async def create():
        pytest.fail("nobody awaits it")

    room = grouplock.Room("r")
    for functions in ({"set_up": create}, {"tear_down": create}):
        with pytest.raises(grouplock.Invalid, match="needs `enter_async`"):
            room.enter("a", **functions)
    assert room.status()["inside"] is None


def test_an_option_of_the_wrong_type_is_named():
    room = grouplock.Room("r")
    with pytest.raises(TypeError, match="timeout cannot be '1': seconds were expected"):
        room.enter("a", timeout="1")
    with pytest.raises(TypeError, match="at_most cannot be 1.5: a whole number was expected"):
        room.enter("a", at_most=1.5)
    with pytest.raises(TypeError, match="priority cannot be 4294967296: a whole number of at most 32 bits"):
        room.enter("a", priority=2**32)


def test_the_version_is_that_of_the_program():
    told = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    assert told == f"grouplock {grouplock.__version__}\n"
