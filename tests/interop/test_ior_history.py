"""Command lines in the history of IOR's test suite: strakes and IOR make the same transfers.

Needs ior and strace on PATH, and a clone of hpc/ior in the directory that IOR_CLONE names. IOR_MPIRUN is the
command that starts ior on a number of ranks ("mpirun --oversubscribe -n"), of the MPI that ior is built with.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.interop.command_options import tool_of
from strakes.runs.engine import LocalEngine
from strakes.targets.workspace import Workspace

pytestmark = pytest.mark.long

TRACE = ("-ff", "-qq", "-y", "-s", "0", "-e", "trace=lseek,read,write,pread64,pwrite64,fsync")
# Excluded: interfaces without system calls or with other servers or libraries, and scripts (their tests are listed).
NOT_COMPARABLE = re.compile(r"DUMMY|S3-|MMAP|-f |\$|MPIIO|HDF5|NCMPI|HDFS")
CALL = re.compile(r"(\w+)\(\d+<([^>]*)>(?:, \"?\"?\.*)?(?:, (\d+))?(?:, (?:(\d+)|SEEK_SET))?\)\s+= (\d+)")

Transfers = Counter[tuple[str, int, int]]


def history() -> list[tuple[int, str]]:
    """Return (ranks, options) of each command line in the history of IOR's tests; skip if a program is missing."""
    clone = os.environ.get("IOR_CLONE", "")
    if not clone or not all(map(shutil.which, ("ior", "strace"))):
        pytest.skip("needs ior, strace and IOR_CLONE")
    command = ["git", "--git-dir", clone, "log", "-p", "--format=", "--", "testing", "test"]
    changes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^\+ *IOR +(\d) +(.*?) *(?:#.*)?$", changes, re.MULTILINE)
    return [(int(ranks), line) for ranks, line in dict.fromkeys(lines) if not NOT_COMPARABLE.search(line)]


def transfers(place: Path) -> Transfers:
    """Count the transfers in all traces by (call, bytes, offset); any number of fsync calls counts as one."""
    done: Transfers = Counter()
    for trace in place.glob("trace.*"):
        at: dict[str, int] = {}
        for name, path, size, offset, result in CALL.findall(trace.read_text(errors="replace")):
            if "testFile" not in path and "strakes" not in path.rpartition("/")[0]:
                continue
            if name == "lseek":
                at[path] = int(result)
            elif name == "fsync":
                # Count fsync once: with -Y, IOR calls fsync twice after each write and once at the end.
                done["fsync", 0, 0] = 1
            elif int(result) == int(size or 0) > 0:
                begin = int(offset) if name.startswith("p") else at.get(path, 0)
                at[path] = begin + int(size)
                done[name.strip("p64"), int(size), begin] += 1
    return done


def of_ior(ranks: int, words: Sequence[str], place: Path) -> Transfers:
    # Before a read, strakes always writes the data. IOR needs -w for that.
    traced = ("strace", *TRACE, "-o", str(place / "trace"), "ior", *words, *([] if "-w" in words else ["-w"]))
    command = [
        *shlex.split(os.environ.get("IOR_MPIRUN", "mpirun -n")),
        str(ranks),
        *traced,
        "-i",
        "1",
        "-o",
        str(place / "testFile"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return transfers(place)


class Traced(LocalEngine):
    def __init__(self, place: Path) -> None:
        super().__init__()
        self._place = place

    def command(self) -> Sequence[str]:
        return ["strace", *TRACE, "-o", str(self._place / "trace"), *super().command()]


def of_strakes(ranks: int, words: Sequence[str], place: Path) -> Transfers:
    plan = tool_of("ior").translate([*words, "-o", str(place / "testFile")], ranks, 1).plan
    with Traced(place) as engine, Workspace.create(place, "strakes") as workspace:
        engine.start()
        assert engine.run(plan, workspace.path, "ior", 120.0).samples
    return transfers(place)


def test_command_lines_in_the_tests_of_ior_make_the_same_transfers(tmp_path: Path) -> None:
    different, compared = [], 0
    for index, (ranks, line) in enumerate(history()):
        places = [tmp_path / f"{index}-{tool}" for tool in ("ior", "strakes")]
        for place in places:
            place.mkdir()
        words = shlex.split(line)
        try:
            own, theirs = of_strakes(ranks, words, places[1]), of_ior(ranks, words, places[0])
        except (BadInputError, subprocess.CalledProcessError):
            # IOR or strakes refused the options, for example because one is mistyped.
            continue
        compared += 1
        # With -Z, several ranks of IOR may read the same data, so offsets are not compared.
        keys = 2 if "-Z" in words else 3
        both = [Counter({key[:keys]: 0 for key in one}) for one in (theirs, own)]
        for one, counts in zip((theirs, own), both, strict=True):
            for key, count in one.items():
                counts[key[:keys]] += count
        if both[0] != both[1]:
            different.append((ranks, line, both[0] - both[1], both[1] - both[0]))
        for place in places:
            shutil.rmtree(place)
    assert not different
    assert compared >= 15
