"""Places for rooms, and other interpreters."""

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time

import pytest

pytest_plugins = ["pytester"]

#: Longer than anything takes on a busy machine, unless it hangs.
LONG = 60.0

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "grouplock")


def until(what, holds):
    """Waits for a fact."""
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline, f"it took too long until {what}"
        time.sleep(0.01)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Interpreter:
    """Another Python, which prints a line when it has come somewhere."""

    def __init__(self, script, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import grouplock, sys, time\n" + script, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def end(self):
        """Waits for its end: the code, and what it wrote."""
        out, err = self.process.communicate(timeout=LONG)
        return self.process.returncode, out, err


@pytest.fixture
def python():
    started = []

    def start(script, *arguments):
        started.append(Interpreter(script, *arguments))
        return started[-1]

    yield start
    for other in started:
        other.process.kill()
        other.process.communicate()


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """Rooms of a test live in a directory of its own."""
    place = tmp_path / "rooms"
    monkeypatch.setenv("GROUPLOCK_AT", str(place))
    return place


@pytest.fixture
def able():
    """For tests of what not every kind of rooms can do: being alone, limits, set-up."""
    import grouplock

    try:
        grouplock.Room("able").exclusive().leave()
    except grouplock.Invalid as cannot:
        pytest.skip(str(cannot))


def _end(processes):
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def etcd(tmp_path_factory):
    if shutil.which("etcd") is None:
        if os.environ.get("GROUPLOCK_REQUIRED"):
            pytest.fail("etcd is not installed")
        pytest.skip("etcd is not installed")
    client, peer = free_port(), free_port()
    url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    process = subprocess.Popen(
        ["etcd", "--data-dir", str(tmp_path_factory.mktemp("etcd")), "--log-level", "error"]
        + ["--listen-client-urls", url, "--advertise-client-urls", url]
        + ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
        + ["--initial-cluster", f"default={peers}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield _answering(f"etcd://127.0.0.1:{client}")
    _end([process])


@pytest.fixture(scope="session")
def gbp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gbp")
    ports = [free_port() for _ in range(3)]
    members = ", ".join(f'{{ address = "127.0.0.1:{port}" }}' for port in ports)
    processes = []
    for number in range(3):
        config = folder / f"node-{number}.toml"
        config.write_text(
            f'id = {number}\ndata = "data-{number}"\nstatus = "127.0.0.1:0"\n[cluster]\nname = "python"\n'
            f'members = [{members}]\ncoterie = "majority"\n[tls]\nplaintext = true\n'
        )
        processes.append(
            subprocess.Popen(
                [PROGRAM, "serve", "--config", str(config)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    yield _answering(f"gbp://127.0.0.1:{ports[0]}")
    _end(processes)


def _answering(place):
    import grouplock

    def answers():
        try:
            grouplock.rooms(place)
        except grouplock.Error:
            return False
        return True

    until(f"{place} answers", answers)
    return place
