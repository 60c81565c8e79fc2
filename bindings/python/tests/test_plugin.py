"""The marker `room`, also under pytest-xdist."""

import json
import os
import shutil

from conftest import LONG

TESTS = """
import json, os, time, pytest

def stay(path, session):
    # Long enough that workers which could overlap do.
    began = time.monotonic()
    time.sleep(0.1)
    with open(path, "a") as file:
        file.write(json.dumps([session, began, time.monotonic(), os.getpid()]) + "\\n")

@pytest.mark.room("database", "schema 41")
@pytest.mark.parametrize("number", range(8))
def test_41(number, inside):
    assert inside.held and inside.session == "schema 41"
    stay({path!r}, "41")

@pytest.mark.room("database", "schema 42", timeout=60)
@pytest.mark.parametrize("number", range(8))
def test_42(number, inside):
    stay({path!r}, "42")
"""


def test_workers_of_one_session_overlap_and_sessions_do_not(pytester, tmp_path):
    path = tmp_path / "stays"
    pytester.makepyfile(TESTS.replace("{path!r}", repr(str(path))))
    result = pytester.runpytest_subprocess("-n", "4", "-p", "no:cacheprovider", timeout=LONG)
    result.assert_outcomes(passed=16)
    stays = [json.loads(line) for line in path.read_text().splitlines()]
    overlapping = [
        (one[0], other[0], one[3] != other[3])
        for one in stays
        for other in stays
        if one is not other and one[1] < other[2] and other[1] < one[2]
    ]
    assert all(one == other for one, other, _ in overlapping), "sessions were inside together"
    assert any(elsewhere for _, _, elsewhere in overlapping), "workers of a session share"


def test_a_room_that_cannot_be_entered_is_an_error_of_the_test(pytester):
    pytester.makepyfile(
        """
        import grouplock, pytest

        @pytest.fixture(scope="module")
        def occupied():
            with grouplock.Room("database").enter("a"):
                yield

        def test_a(occupied):
            pass

        @pytest.mark.room("database", "b", timeout=0)
        def test_b():
            pass
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", timeout=LONG)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the room is occupied by the session `a`*"])


def test_a_marker_without_a_session_says_what_it_needs(pytester):
    pytester.makepyfile("import pytest\n@pytest.mark.room('r')\ndef test(): pass")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=LONG)
    result.stdout.fnmatch_lines(["*needs a room and a session*"])
    assert result.ret != 0


def test_a_schema_is_made_once_for_all_that_use_it_together(pytester, tmp_path):
    path = tmp_path / "made"
    pytester.makepyfile(
        f"""
        import pytest

        def make():
            with open({str(path)!r}, "a") as file:
                file.write("41\\n")

        @pytest.mark.room("database", "schema 41", set_up=make)
        @pytest.mark.parametrize("number", range(16))
        def test_41(number):
            with open({str(path)!r}) as file:
                assert file.read() == "41\\n"
        """
    )
    result = pytester.runpytest_subprocess("-n", "4", "-p", "no:cacheprovider", timeout=LONG)
    result.assert_outcomes(passed=16)


EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "examples", "test_schemas.py")


def test_the_example_shares_a_database_among_four_workers(pytester, tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE", str(tmp_path / "database"))
    shutil.copy(EXAMPLE, pytester.path)
    result = pytester.runpytest_subprocess("-n", "4", "-p", "no:cacheprovider", timeout=LONG)
    result.assert_outcomes(passed=40)
