"""What every test can use: a store and a home of its own, the command line as a process; which tests run, and which
beside others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Whoever starts the tests in the background of a shell has them ignore Ctrl-C, and so would every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Rooms whose tests touch files of their own only, so that two processes can share them out (pytest-xdist, as ./dev test
# does). All others come one after another: they start engines of many ranks, mount, or change settings of the machine.
APART = {
    *(
        "accept",
        "advise",
        "analysis",
        "bench",
        "bootstrap",
        "cli",
        "compare",
        "failover",
        "findings",
        "history",
        "interop",
        "packaging",
    ),
    *(
        "opened",
        "plan",
        "portraits",
        "report",
        "reproduce",
        "statistics",
        "store",
        "studies",
        "survey",
        "tune",
        "watch",
    ),
}

StrakesRunner = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the long tests too")
    parser.addoption("--quick", action="store_true", help="leave out tests of which another one of their kind is run")


def pytest_configure(config: pytest.Config) -> None:
    # The first process gets the tests of real servers, which are taken for dead when they get no processor.
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        os.nice(10)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    without = [] if config.getoption("--all") else ["long", *(["more"] if config.getoption("--quick") else [])]
    left_out = {item: None for item in items if any(map(item.get_closest_marker, without))}
    config.hook.pytest_deselected(items=list(left_out))
    # What waits begins first. (Sorting keeps the order otherwise.)
    items[:] = sorted((item for item in items if item not in left_out), key=lambda item: group_of(item) != "waits")
    for item in items:
        if group := group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))


def group_of(item: pytest.Item) -> str:
    """Return the group of a test: tests of one group follow one another; those of none run beside whatever runs."""
    if item.get_closest_marker("waits"):
        return "waits"
    place = item.path.relative_to(ROOT).parts
    apart = place[0] == "src" or place[1] in APART
    return "" if apart and not item.get_closest_marker("lab") else "machine"


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the user's own runs, logs or caches."""
    base = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("STRAKES_STORE", str(base / "store"))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(base / name.lower()))


@pytest.fixture
def strakes() -> StrakesRunner:
    """Run the command line as a process of its own: ``strakes("runs", "--json")``."""

    def run(
        *arguments: str | Path, environment: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "strakes", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
