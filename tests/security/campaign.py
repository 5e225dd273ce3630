"""One seed, one schedule of faults over a survey that is then gone on with; ``python -I tests/security/campaign.py SEED [SEEDS]``."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

# An interrupt before the first line of strakes has run ends Python by the signal, which shells call 130, too.
_STATUSES = {0, 1, 2, 3, 130, -signal.SIGINT, -signal.SIGKILL}
_PATIENCE_S = 30.0
_MARK = "STRAKES_CAMPAIGN"


class BrokenError(AssertionError):
    """An invariant does not hold."""


def run_seed(seed: int) -> list[str]:
    """What was done. Raises BrokenError."""
    draw = random.Random(seed)
    place = Path(tempfile.mkdtemp(prefix=f"strakes-seed-{seed}-"))
    directory, canary = place / "measured", place / "canary"
    directory.mkdir()
    _make_canary(canary, directory)
    before = _digest(canary), _digest(directory)
    mark = f"{seed}-{place.name}"
    environment = {
        **os.environ,
        "STRAKES_STORE": str(place / "store"),
        "XDG_STATE_HOME": str(place / "state"),
        _MARK: mark,
    }
    words = ["survey", str(directory), "--budget", "4s", "--quiet"]
    done: list[str] = []
    try:
        process = _start(words, environment)
        for _ in range(draw.randint(1, 3)):
            time.sleep(draw.uniform(0.2, 3.0))
            done.append(_do_fault(draw, process, directory, mark))
        status = _end(process)
        done.append(f"ended with {status}")
        _require(status in _STATUSES, f"exit status {status}")
        _require_gone(mark)
        kept = _visits(place / "store")
        done.append(f"resumed with {_end(_start([*words, '--resume'], environment))}")
        _require_gone(mark)
        _require(all(row in _visits(place / "store") for row in kept), "visits were lost or made again")
        _require(_end(_start(["runs", "--json"], environment)) == 0, "the store is not listed")
        _require(_end(_start(["clean", str(directory)], environment)) == 0, "clean failed")
        _require((_digest(canary), _digest(directory)) == before, "something outside the workspace changed or was left")
    finally:
        for pid in _marked(mark):
            _kill(pid)
    shutil.rmtree(place)
    return done


def _make_canary(canary: Path, directory: Path) -> None:
    """Files, a hard link into the measured directory, and links that lead out of it."""
    (canary / "below").mkdir(parents=True)
    for number in range(20):
        (canary / "below" / f"file{number}").write_bytes(random.Random(number).randbytes(1000))
    os.link(canary / "below" / "file0", directory / "hard")
    (directory / "soft").symlink_to(canary)
    (directory / "strakes-20260101-000000-planted").symlink_to(canary)


def _digest(top: Path) -> str:
    lines = []
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        lines.append(
            f"{path.relative_to(top)} {status.st_mode} {status.st_nlink} {hashlib.sha256(content).hexdigest()}"
        )
    return "\n".join(lines)


def _start(words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-m", "strakes", *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)


def _end(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(90)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        raise BrokenError("it does not end") from error


def _do_fault(draw: random.Random, process: subprocess.Popen[bytes], directory: Path, mark: str) -> str:
    fault = draw.choice(
        ["kill front end", "kill engine", "stop front end", "interrupt", "kill any", "rename workspace"]
    )
    others = sorted(pid for pid in _marked(mark) if pid != process.pid)
    engines = [pid for pid in others if b"strakes-engine" in _command(pid)]
    if fault == "kill front end" and process.poll() is None:
        process.kill()
    elif fault == "interrupt" and process.poll() is None:
        process.send_signal(signal.SIGINT)
    elif fault == "stop front end" and process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(draw.uniform(0.1, 2.0))
        process.send_signal(signal.SIGCONT)
    elif fault == "kill engine" and engines:
        _kill(draw.choice(engines))
    elif fault == "kill any" and others:
        _kill(draw.choice(others))
    elif fault == "rename workspace":
        for workspace in directory.glob("strakes-*"):
            if not workspace.is_symlink():
                moved = workspace.with_name("moved-by-the-owner")
                workspace.rename(moved)
                time.sleep(draw.uniform(0.05, 0.5))
                moved.rename(workspace)
    else:
        return f"{fault}: not there"
    return fault


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _marked(mark: str) -> list[int]:
    """Processes of this seed: they inherit its mark."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found


def _require_gone(mark: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while left := _marked(mark):
        _require(time.monotonic() < deadline, f"processes are left: {[_command(pid) for pid in left]}")
        time.sleep(0.2)


def _visits(store: Path) -> list[object]:
    rows: list[object] = []
    for path in store.glob("runs/*/visits.jsonl"):
        lines = path.read_bytes().split(b"\n")
        rows += [json.loads(line) for line in lines[:-1]]
    return rows


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenError(what)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    broken = 0
    for each in range(first, first + count):
        try:
            print(each, "holds:", "; ".join(run_seed(each)), flush=True)
        except BrokenError as error:
            broken += 1
            print(each, "BROKEN:", error, flush=True)
    sys.exit(broken > 0)
