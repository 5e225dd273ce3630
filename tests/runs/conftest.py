from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mounts import tmpfs_mounted
from strakes.base.errors import EnvironmentLacksError
from strakes.runs.engine import LocalEngine, find_engine
from strakes.runs.messages import Progress
from strakes.runs.store import Store
from strakes.runs.writer import RunWriter
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
    try:
        find_engine()
    except EnvironmentLacksError:
        pytest.skip("the engine is not built")
    with LocalEngine() as engine:
        engine._hear = log.append  # type: ignore[assignment]
        yield engine


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.create(tmp_path, "20260101-000000-test-0000") as workspace:
        yield workspace


@pytest.fixture
def fake_engine(tmp_path: Path) -> FakeEngine:

    def make(body: str) -> Path:
        from strakes.base.version import __version__

        path = tmp_path / "fake-engine"
        path.write_text(_PREAMBLE.format(python=sys.executable, version=__version__) + body)
        path.chmod(0o755)
        return path

    return make


def once(act: Callable[[], object], when: Callable[[Progress], bool] = lambda _: True) -> Callable[[Progress], None]:
    calls = [act]

    def on_progress(progress: Progress) -> None:
        if calls and when(progress):
            calls.pop()()

    return on_progress


MakeRun = Callable[..., RunWriter]


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    directory = tmp_path / "measured"
    directory.mkdir()
    return directory


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def make_run(store: Store, measured: Path) -> MakeRun:

    def make(name: str = "transfer-size", fingerprint: str = "f", kind: str = "study") -> RunWriter:
        return store.create(kind, name, measured, {"fingerprint": fingerprint}, {"mount": {"file_system": "xfs"}})

    return make


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    with tmpfs_mounted("4m") as place:
        yield place
