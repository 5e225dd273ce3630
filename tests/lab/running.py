"""Labs of tests: each has its own directory, and is removed and checked for remains after the test."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.base.processes import process_start
from strakes.lab.kind import load
from strakes.lab.packages import missing
from strakes.lab.process import MARK
from strakes.targets.mountinfo import read_mounts

SOURCES = Path(__file__).resolve().parents[2] / "src"
# Low priority: servers tolerate delays, and other tests run on the machine.
_COMMAND = ["nice", "-n", "10", sys.executable, "-m", "strakes", "lab"]
_UP_S, _SHORT_S = 300, 60


@dataclass(frozen=True)
class Footprint:
    """What labs use while they are up: lab ids, processes (process ID and start time) and network namespaces."""

    ids: frozenset[str]
    pids: frozenset[tuple[int, int]]
    networks: frozenset[int]


class Labs:
    """The command ``strakes lab`` with its own directory of labs, ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.environment = {**os.environ, "PYTHONPATH": str(SOURCES), "XDG_STATE_HOME": str(root)}

    def run(self, *words: str | Path, timeout_s: float = _SHORT_S) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_COMMAND, *map(str, words)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def begin(self, *words: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*_COMMAND, *map(str, words)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run("up", *(part for word in words for part in str(word).split()), timeout_s=_UP_S)

    def up(self, *words: str | Path) -> Path:
        need(str(words[0]).split(maxsplit=1)[0])
        done = self.start(*words)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())

    def down(self, *words: str | Path) -> None:
        done = self.run("down", *words)
        assert done.returncode == 0, done.stderr

    def status(self, name: str) -> dict[str, Any]:
        found = json.loads(self.run("status", name, "--json").stdout)
        assert len(found) == 1, found
        document: dict[str, Any] = found[0]
        return document

    def pids(self, name: str, role: str) -> list[int]:
        return [one["pid"] for one in self.status(name)["processes"] if one["alive"] and one["role"].startswith(role)]

    def footprint(self) -> Footprint:
        # An access to the mounts would block if their servers are stopped.
        journals = [path.read_text().splitlines() for path in self.root.glob("strakes/lab/*/lab.jsonl")]
        records = [json.loads(line) for lines in journals for line in lines]
        ids = frozenset(one["id"] for one in records if "id" in one)
        spaces = (one for one in read_mounts() if one.file_system == "nsfs")
        kept = [one for one in spaces if one.mount_point.startswith(str(self.root))]
        networks = frozenset(int(one.root.partition("[")[2].rstrip("]")) for one in kept)
        members = {pid for pid in _processes() if _marked(pid, ids) or _network(pid) in networks}
        members |= {one["pid"] for one in records if "role" in one}
        return Footprint(
            ids, frozenset((pid, started) for pid in members if (started := process_start(pid)) is not None), networks
        )

    def remains(self, *footprints: Footprint) -> list[str]:
        found = [str(path) for pattern in ("*", "strakes/lab/*") for path in self.root.glob(pattern)]
        found += [f"mounted: {one.mount_point}" for one in read_mounts() if one.mount_point.startswith(str(self.root))]
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            with suppress(OSError):
                if str(self.root) in (text := backing.read_text()):
                    found.append(f"loop device: {text.strip()}")
        found += [f"process {pid}" for pid in _processes() if str(self.root) in _words(pid)]
        for one in footprints:
            found += [f"process {pid}" for pid, started in one.pids if process_start(pid) == started]
            processes = (pid for pid in _processes() if _marked(pid, one.ids) or _network(pid) in one.networks)
            found += [f"process {pid}" for pid in processes]
            for lab in one.ids:
                found += [str(path) for path in Path("/sys/fs/cgroup").rglob(f"strakes-lab-{lab}*")]
        return found


@contextmanager
def own_labs() -> Iterator[Labs]:
    with Path(tempfile.gettempdir(), "strakes-lab-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The path is short, because Linux limits the path of a Unix socket to 108 bytes.
        root = Path(tempfile.mkdtemp(prefix="sl-"))
        root.chmod(0o755)
        labs = Labs(root / "s")
        try:
            yield labs
            before = labs.footprint()
        finally:
            done = labs.run("down", "--all", "--force")
            left = labs.remains()
            if not any(one.mount_point.startswith(str(root)) for one in read_mounts()):
                shutil.rmtree(root, ignore_errors=True)
        assert done.returncode == 0, done.stderr
        left += labs.remains(before)
        assert not left, left


def need(kind: str, *programs: str) -> None:
    lab = load(kind)
    if lab.needs_root and os.geteuid() != 0:
        pytest.skip(f"a lab of {kind} needs root")
    lacking = missing(lab.packages_for(lab.options_type()))
    if lacking:
        pytest.skip(f"packages for {kind} are missing: {', '.join(sorted({one.name for one in lacking}))}")
    try:
        lab.check(lab.options_type(), Path(tempfile.gettempdir()))
    except EnvironmentLacksError as error:
        pytest.skip(f"a lab of {kind} cannot be here: {error.why}")
    absent = [program for program in programs if program and shutil.which(program) is None]
    if absent:
        pytest.skip(f"programs for {kind} are missing: {', '.join(absent)}")


def _processes() -> list[int]:
    return [
        int(entry)
        for entry in os.listdir("/proc")
        if entry.isdigit() and int(entry) != os.getpid() and process_start(int(entry)) is not None
    ]


def _marked(pid: int, ids: frozenset[str]) -> bool:
    with suppress(OSError):
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return any(f"{MARK}={lab}".encode() in environment for lab in ids)
    return False


def _network(pid: int) -> int:
    with suppress(OSError):
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    return 0


def _words(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""
