"""IOR and mdtest: MPI programs, one process per rank."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.contenders import Rates, one_after_the_other, output_of
from bench.work import SMALL, Work
from strakes.interop.foreign import Foreign
from strakes.interop.formats import read_file

# Name of an mdtest operation in the reader of strakes -> its name in the bench.
_FILES = {
    "file-creation": "file-create",
    "file-stat": "file-stat",
    "file-read": "file-open-close",
    "file-removal": "file-remove",
}
_DIRECTORIES = {"directory-creation": "dir-create", "directory-stat": "dir-stat", "directory-removal": "dir-remove"}


class Mdtest:
    """mdtest with a directory for each rank (-u)."""

    name = "mdtest"

    def __init__(self, mpiexec: str, program: str) -> None:
        self._mpiexec, self._program = mpiexec, program
        with TemporaryDirectory(prefix="strakes-bench-") as directory:
            # mdtest has no option for its version, so read the version from a short run.
            self.version = f"mdtest {self._read(1, ['-F', '-n', '1', '-d', directory]).version}"

    def takes(self, work: Work) -> bool:
        return work.kind in ("files", "directories", "small")

    def run(self, work: Work, directory: Path) -> Rates:
        options = {"files": ["-F"], "directories": ["-D"], "small": ["-F", "-w", str(work.file_bytes), "-C", "-r"]}[
            work.kind
        ]
        result = self._read(work.ranks, ["-u", "-n", str(work.items), "-d", str(directory), *options])
        rates = {figure.name: figure.values[0] for figure in result.figures}
        if work.kind == "small":
            return {SMALL: one_after_the_other(rates["file-creation"], rates["file-removal"])}
        names = _FILES if work.kind == "files" else _DIRECTORIES
        return {ours: rates[theirs] for theirs, ours in names.items()}

    def _read(self, ranks: int, options: list[str]) -> Foreign:
        output = _launched(self._mpiexec, ranks, self._program, options, r"launched with (\d+) total task")
        with TemporaryDirectory(prefix="strakes-bench-") as directory:
            path = Path(directory, "mdtest.txt")
            path.write_text(output)
            return read_file(path).tests[0]


class Ior:
    """IOR with a file for each rank (-F) and one pass per operation. Only the transfers are timed (wr/rd)."""

    name = "IOR"

    def __init__(self, mpiexec: str, program: str) -> None:
        self._mpiexec, self._program = mpiexec, program
        with TemporaryDirectory(prefix="strakes-bench-") as directory:
            output = self._output(1, ["-t", "4k", "-b", "4k", "-o", str(Path(directory) / "data")])
        banner = re.search(r"^IOR-([^\s:]+)", output, re.MULTILINE)
        self.version = f"IOR {banner[1]}" if banner else "IOR"

    def takes(self, work: Work) -> bool:
        return work.kind == "data" and work.depth == 1

    def run(self, work: Work, directory: Path) -> Rates:
        common = [
            "-a",
            "POSIX",
            "-F",
            "-k",
            "-t",
            str(work.transfer_bytes),
            "-b",
            str(work.data_bytes),
            "-o",
            str(directory / "data"),
        ]
        if work.direct:
            common.append("--posix.odirect")
        first = self._seconds(work.ranks, [*common, "-w", "-r"])
        again = self._seconds(work.ranks, [*common, "-w", "-E"])
        transfers = work.ranks * work.data_bytes / work.transfer_bytes
        seconds = {"write": first["write"], "rewrite": again["write"], "read": first["read"]}
        return {operation: transfers / taken for operation, taken in seconds.items()}

    def _seconds(self, ranks: int, options: list[str]) -> dict[str, float]:
        seconds: dict[str, float] = {}
        heads: list[str] = []
        for line in self._output(ranks, options).splitlines():
            cells = line.split()
            if cells[:1] == ["access"] and "wr/rd(s)" in cells:
                heads = cells
            elif heads and cells and cells[0] in ("write", "read") and cells[0] not in seconds:
                seconds[cells[0]] = float(dict(zip(heads, cells, strict=False))["wr/rd(s)"])
        return seconds

    def _output(self, ranks: int, options: list[str]) -> str:
        return _launched(self._mpiexec, ranks, self._program, options, r"^tasks\s*: (\d+)")


def _launched(mpiexec: str, ranks: int, program: str, options: list[str], tasks: str) -> str:
    """Return the output of an MPI program.

    Raises SystemExit for a wrong number of tasks: the launcher of another MPI starts independent programs.
    """
    output = output_of([mpiexec, "-n", str(ranks), program, *options])
    match = re.search(tasks, output, re.MULTILINE)
    if match is None or int(match[1]) != ranks:
        raise SystemExit(
            f"bench: {program} did not run with {ranks} tasks: give the launcher of the MPI it is built with "
            "(--mpiexec)"
        )
    return output
