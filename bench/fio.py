"""fio with file engines for metadata, and with psync or io_uring for data."""

from __future__ import annotations

import json
from pathlib import Path

from bench.contenders import Rates, output_of
from bench.work import Work

# Operation in the bench -> options of fio.
_FILES = {
    "file-create": ["--ioengine=filecreate"],
    "file-stat": ["--ioengine=filestat", "--stat_type=stat"],
    "file-remove": ["--ioengine=filedelete"],
}
_DATA = {
    "write": ["--rw=write"],
    "rewrite": ["--rw=write", "--overwrite=1", "--time_based"],
    "read": ["--rw=read", "--time_based"],
}


class Fio:
    """fio with one process per rank. Each operation is one run, on the files of the previous run."""

    name = "fio"

    def __init__(self, program: str) -> None:
        self._program = program
        self.version = output_of([program, "--version"]).strip()

    def takes(self, work: Work) -> bool:
        return work.kind in ("files", "data")

    def run(self, work: Work, directory: Path) -> Rates:
        own = [directory / f"r{rank}" for rank in range(work.ranks)]
        for path in own:
            path.mkdir()
        if work.kind == "files":
            # Process files in order. By default, fio searches all files for the next one.
            common = [f"--nrfiles={work.items}", "--filesize=4k", "--openfiles=1", "--file_service_type=sequential"]
            return {
                operation: self._rate([*common, *options], own, fresh=operation == "file-create")
                for operation, options in _FILES.items()
            }
        # The other programs do not pre-allocate, change the buffer between writes, or drop caches.
        engine = ["--ioengine=psync"]
        if work.depth > 1:
            engine = ["--ioengine=io_uring", f"--iodepth={work.depth}", "--fixedbufs", "--registerfiles"]
        common = [*engine, f"--bs={work.transfer_bytes}", f"--size={work.data_bytes}", f"--direct={int(work.direct)}"]
        common += ["--scramble_buffers=0", "--invalidate=0", f"--runtime={work.repeat_ms}ms"]
        return {operation: self._rate([*common, *options], own) for operation, options in _DATA.items()}

    def _rate(self, arguments: list[str], directories: list[Path], *, fresh: bool = False) -> float:
        """Run fio and return operations per second.

        ``fresh``: replace each directory just before its job. Otherwise, fio first looks up every file, and negative
        dentries make creates cheaper.
        """
        jobs = []
        for path in directories:
            jobs += [f"--name={path.name}", f"--directory={path}"]
            if fresh:
                jobs.append(f"--exec_prerun=rmdir {path} && mkdir {path}")
        command = [
            self._program,
            "--output-format=json",
            "--group_reporting",
            "--filename_format=f0.$filenum",
            "--fallocate=none",
        ]
        # fio writes the output of exec_prerun to its working directory.
        output = output_of([*command, *arguments, *jobs], cwd=directories[0].parent)
        job = json.loads(output[output.index("{") :])["jobs"][0]
        done = job["read"] if job["read"]["total_ios"] else job["write"]
        return float(done["total_ios"] / (done["runtime"] * 1e-3))
