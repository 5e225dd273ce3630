"""elbencho in directory mode, one thread per rank."""

from __future__ import annotations

import re
from pathlib import Path

from bench.contenders import Rates, one_after_the_other, output_of
from bench.work import SMALL, Work
from strakes.interop.formats import read_file

# Operation in the bench -> (option of elbencho, name of the phase in the reader of strakes).
_FILES = {
    "file-create": ("-w", "write"),
    "file-stat": ("--stat", "stat"),
    "file-open-close": ("-r", "read"),
    "file-remove": ("-F", "rmfiles"),
}
_DIRECTORIES = {"dir-create": ("-d", "mkdirs"), "dir-remove": ("-D", "rmdirs")}


class Elbencho:
    """elbencho with one directory per thread."""

    name = "elbencho"

    def __init__(self, program: str) -> None:
        self._program = program
        version = re.search(r"Version:\s*(\S+)", output_of([program, "--version"]))
        self.version = f"elbencho {version[1]}" if version else "elbencho"

    def takes(self, work: Work) -> bool:
        return work.kind != "pool" and work.depth == 1

    def run(self, work: Work, directory: Path) -> Rates:
        if work.kind == "directories":
            rates = self._rates(
                work, directory, ["-n", str(work.items), *(option for option, _ in _DIRECTORIES.values())]
            )
            return {operation: rates[phase, "entries"] for operation, (_, phase) in _DIRECTORIES.items()}
        one_each = ["-d", "-n", "1"]
        if work.kind == "data":
            size = [
                *one_each,
                "-N",
                "1",
                "-s",
                str(work.data_bytes),
                "-b",
                str(work.transfer_bytes),
                *(["--direct"] if work.direct else []),
            ]
            first = self._rates(work, directory, [*size, "-w", "-r"])
            again = self._rates(work, directory, [*size, "-w"])
            bytes_per_s = {
                "write": first["write", "bytes"],
                "rewrite": again["write", "bytes"],
                "read": first["read", "bytes"],
            }
            return {operation: rate / work.transfer_bytes for operation, rate in bytes_per_s.items()}
        items = [*one_each, "-N", str(work.items), "-s", str(work.file_bytes)]
        if work.kind == "small":
            rates = self._rates(work, directory, [*items, "-b", str(work.file_bytes), "-w", "-F"])
            return {SMALL: one_after_the_other(rates["write", "entries"], rates["rmfiles", "entries"])}
        rates = self._rates(work, directory, [*items, *(option for option, _ in _FILES.values())])
        return {operation: rates[phase, "entries"] for operation, (_, phase) in _FILES.items()}

    def _rates(self, work: Work, directory: Path, options: list[str]) -> dict[tuple[str, str], float]:
        results = directory / "elbencho.json"
        results.unlink(missing_ok=True)
        output_of(
            [self._program, "--nolive", "--jsonfile", str(results), "-t", str(work.ranks), *options, str(directory)]
        )
        figures = [figure for test in read_file(results).tests for figure in test.figures]
        return {
            (
                figure.name.removesuffix("-entries"),
                "bytes" if figure.metric == "bytes_per_s" else "entries",
            ): figure.values[0]
            for figure in figures
        }
