from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strakes.errors import EnvironmentLacksError
from strakes.launch.engine import LocalEngine, find_engine
from strakes.targets.workspace import Workspace

Log = list[str]
FakeEngine = Callable[[str], Path]

_PREAMBLE = """#!{python}
import json, os, signal, sys, time
def say(type, **keys):
    print(json.dumps({{"type": type, "version": 1, **keys}}), flush=True)
def hello(**keys):
    say("hello", **{{"engine": "{version}", "host": "h", "pid": os.getpid(), "backends": ["posix"], "kinds": [], "clock": "tsc", **keys}})
def plans():
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "plan":
            yield message
"""


def compiled(source: str, place: Path, *options: str) -> Path:
    """Return a library to preload, compiled of a C file of this directory. Skip the test without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the library needs a C compiler")
    library = place / f"{source}.so"
    path = Path(__file__).with_name(f"{source}.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, path, *options], check=True)
    return library


@pytest.fixture
def log() -> Log:
    return []


@pytest.fixture
def engine(log: Log) -> Iterator[LocalEngine]:
    """Return the real engine, closed after the test; skip if it is not built."""
    try:
        find_engine()
    except EnvironmentLacksError:
        pytest.skip("the engine is not built")
    with LocalEngine(log=log.append) as engine:
        yield engine


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.create(tmp_path, "20260101-000000-test-0000") as workspace:
        yield workspace


@pytest.fixture
def fake_engine(tmp_path: Path) -> FakeEngine:
    """Return a function that writes an executable fake engine whose body is the given Python code."""

    def make(body: str) -> Path:
        from strakes.version import __version__

        path = tmp_path / "fake-engine"
        path.write_text(_PREAMBLE.format(python=sys.executable, version=__version__) + body)
        path.chmod(0o755)
        return path

    return make
