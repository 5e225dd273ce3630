"""Do command lines of IOR and mdtest mean the same work here? The original and our engine run them in turn; ratios with intervals.

python -m bench.command_lines DIR --mpiexec mpiexec --ior path/to/ior --mdtest path/to/mdtest
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from strakes.interop.commands import TOOLS
from strakes.interop.formats import read_file
from strakes.launch.local import LocalEngine
from strakes.report.numbers import show
from strakes.statistics.comparison import judge, within_blocks
from strakes.statistics.interval import median
from strakes.targets.workspace import Workspace

# Small enough to stay in memory: what is compared is the work, not the file system.
LINES = (
    ("ior", "-F -t 1m -b 64m -o {place}/f"),
    ("ior", "-t 256k -b 32m -o {place}/f"),
    ("mdtest", "-F -u -n 5000 -d {place}/md"),
    ("mdtest", "-u -n 2000 -w 3901 -e 3901 -d {place}/md"),
)
MARGIN = 0.1


def original(words: list[str], directory: Path) -> dict[str, float]:
    """One run of the tool: rate of each figure it prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=True)
        file.write(done.stdout)
        file.flush()
        return {figure.name: figure.values[0] for figure in read_file(Path(file.name))[1].figures}


def ours(engine: LocalEngine, tool: str, line: str, ranks: int, workspace: Path, name: str) -> dict[str, float]:
    """One run of the same command line on our engine."""
    plan = TOOLS[tool].translate(shlex.split(line), ranks, 1).plan
    result = engine.run(plan, workspace, name, 120.0)
    metric = "bytes_per_s" if tool == "ior" else "operations_per_s"
    return {str(sample.raw["name"]): float(sample.raw[metric]) for sample in result.samples}


def compare(line: str, rounds: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> list[str]:
    """A row for each figure that both have."""
    names = [name for name in rounds[0][1] if all(name in theirs and name in own for theirs, own in rounds)]
    pairs = {name: ({i: one[0][name] for i, one in enumerate(rounds)}, {i: one[1][name] for i, one in enumerate(rounds)}) for name in names}
    rows = []
    for name, said in zip(names, judge([within_blocks(*pairs[name]) for name in names], 0.9, MARGIN), strict=True):
        theirs, own = (median(list(side.values())) for side in pairs[name])
        unit = "B/s" if name in ("write", "read") else "op/s"
        interval = said.ratio.interval
        bounds = f"[{interval.low:.2f} - {interval.high:.2f}]" if interval else "[too few rounds]"
        rows.append(f"| `{line}` | {name} | {show(theirs, unit)} | {show(own, unit)} | {said.ratio.median:.2f} {bounds} | {said.verdict} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--ior")
    parser.add_argument("--mdtest")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    print("| command line | figure | original | strakes | ratio, 90 % for all of a line | strakes is |\n|---|---|---|---|---|---|")
    with LocalEngine() as engine, Workspace.create(options.directory, "command-lines") as workspace:
        engine.start()
        for tool, line in LINES:
            program = getattr(options, tool)
            if program is None:
                continue
            placed = line.format(place=options.directory)
            words = [options.mpiexec, "-n", str(options.ranks), program, *shlex.split(placed)]
            rounds = [
                (original(words, options.directory), ours(engine, tool, placed, options.ranks, workspace.path, f"{tool}{index}"))
                for index in range(options.rounds)
            ]
            print("\n".join(compare(f"{tool} {line.format(place='DIR')}", rounds)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
