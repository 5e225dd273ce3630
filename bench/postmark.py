"""Postmark: pools of small files with and without transactions, one process per rank."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from bench.contenders import Rates
from bench.work import POOL, POOL_DIRECTORIES, POOL_LEAST_BYTES, POOL_MOST_BYTES, POOL_UNIT_BYTES, SMALL, Work

_CONFIGURATION = """\
set location {directory}
set number {files}
set transactions {transactions}
set subdirectories {subdirectories}
set size {least} {most}
set read {unit}
set write {unit}
set buffering false
set report terse
run
quit
"""

_FEWEST = 10


class Postmark:
    """Postmark, timed by the bench, because Postmark reports only whole seconds.

    The time of a run with ten files and transactions is subtracted as start-up. With fewer, Postmark divides by zero.
    """

    name = "Postmark"

    def __init__(self, program: str) -> None:
        self._program = program
        banner = subprocess.run([program], input="quit\n", capture_output=True, text=True, check=False).stdout
        self.version = banner.partition("\n")[0].strip()

    def takes(self, work: Work) -> bool:
        return work.kind in ("small", "pool")

    def run(self, work: Work, directory: Path) -> Rates:
        own = [directory / f"r{rank}" for rank in range(work.ranks)]
        for path in own:
            path.mkdir()
        overhead = self._seconds(work, own, _FEWEST)
        seconds = self._seconds(work, own, work.items) - overhead
        return {POOL if work.kind == "pool" else SMALL: work.ranks * (work.items - _FEWEST) / seconds}

    def _seconds(self, work: Work, directories: list[Path], files: int) -> float:
        pool = work.kind == "pool"
        settings = {
            "files": files,
            "transactions": files if pool else _FEWEST,
            "subdirectories": POOL_DIRECTORIES if pool else 0,
            "least": POOL_LEAST_BYTES if pool else work.file_bytes,
            "most": POOL_MOST_BYTES if pool else work.file_bytes,
            "unit": POOL_UNIT_BYTES if pool else work.file_bytes,
        }
        configurations = [_CONFIGURATION.format(directory=path, **settings) for path in directories]
        start = time.perf_counter()
        running = [
            subprocess.Popen(
                [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for _ in configurations
        ]
        for process, configuration in zip(running, configurations, strict=True):
            assert process.stdin is not None
            process.stdin.write(configuration)
            process.stdin.close()
        outputs = [process.stdout.read() if process.stdout else "" for process in running]
        for process in running:
            process.wait()
        seconds = time.perf_counter() - start
        for text in outputs:
            if "Deleting files...Done" not in text:
                raise SystemExit(f"bench: postmark: {text.strip()}")
        return seconds
