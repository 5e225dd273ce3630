"""Fixtures of all tests (a private store and home, the command line as a process), test selection and scheduling."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

ROOT = Path(__file__).resolve().parent.parent

# By default Hypothesis fails an example that is slow. On a busy machine slowness is no fault.
settings.register_profile("strakes", deadline=None)
settings.load_profile("strakes")

# Processes that tests start import strakes even if it is not installed.
os.environ["PYTHONPATH"] = str(ROOT / "src")

# A shell starts background jobs with SIGINT ignored, and child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Directories whose tests mount file systems or need all processors. Other tests may run in parallel.
OF_THE_MACHINE = {"api", "lab", "newcomer", "security", "targets"}

# The tests of one of these files share slow fixtures, so one process runs the whole file.
_TOGETHER = {"tests/tuning/test_source.py", "tests/report/test_browser.py"}

# The tests of these files start the HA pair of the lab.
_OF_THE_PAIR = {"tests/failover/test_lab_ha.py", "tests/failover/test_runbook.py"}

StrakesRunner = Callable[..., subprocess.CompletedProcess[str]]


def one_in(number: int, cases: Iterable[object]) -> list[object]:
    """Return the cases with marks that restrict ``--quick`` to every ``number``-th of them.

    A tuple is unpacked into the arguments of the test.
    """
    return [
        case
        if position % number == 0
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.more)
        for position, case in enumerate(cases)
    ]


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the long tests too")
    parser.addoption("--quick", action="store_true", help="leave out tests of which another one of their kind is run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    without = [] if config.getoption("--all") else ["long", *(["more"] if config.getoption("--quick") else [])]
    left_out = {item: None for item in items if any(map(item.get_closest_marker, without))}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    # pytest-xdist 3.8 ignores the marker xdist_group under pytest 9.2.
    from xdist.scheduler import LoadScopeScheduling

    class Chains(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return chain_of(nodeid) or (file if file in _TOGETHER else nodeid)

    return Chains(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let one process collect the tests before the others, which then reuse its compiled files.

    The garbage collector is off meanwhile, because collected tests live until the end.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "collecting.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run the tests of a chain at normal priority and others at low priority, so that real servers are not starved."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        with contextlib.suppress(PermissionError):  # tests with real servers need root
            os.setpriority(os.PRIO_PROCESS, 0, 0 if chain_of(item.nodeid) else 10)


def chain_of(nodeid: str) -> str:
    """Return the chain of a test, or "" if it may run in parallel with any other test.

    The tests of a chain run one after another. "pair": tests with the HA pair of the lab. "lab": tests with other real
    servers. "machine": tests that mount file systems or need all processors.
    """
    place = PurePosixPath(nodeid.partition("::")[0])
    if str(place) in _OF_THE_PAIR:
        return "pair"
    if place.name.startswith("test_lab_"):
        return "lab"
    return "machine" if place.parts[0] == "tests" and place.parts[1] in OF_THE_MACHINE else ""


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("STRAKES_STORE", str(base / "store"))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(base / name.lower()))


@pytest.fixture
def strakes() -> StrakesRunner:

    def run(
        *arguments: str | Path, environment: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "strakes", *map(str, arguments)],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
