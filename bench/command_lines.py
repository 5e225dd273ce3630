"""Compare IOR and mdtest with ``strakes run`` of the same command lines.

The original tool and our engine run each command line alternately. The table shows ratios with intervals.

python -m bench.command_lines tmpfs=/dev/shm xfs=/mnt/xfs --mpiexec mpiexec --ior path/to/ior --mdtest path/to/mdtest

--whole compares whole commands, from start to exit: ior -b 1m, the same with mpiexec, and strakes run ior -b 1m.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.places import Place, given_places
from strakes.interop.command_options import tool_of
from strakes.interop.formats import read_file
from strakes.report.numbers import show
from strakes.runs.engine import LocalEngine
from strakes.stats.interval import median
from strakes.stats.ratios import judge, within_blocks
from strakes.targets.workspace import Workspace

# All data fit into the page cache. With 40,000 items, a phase takes at least 40 ms, far longer than a barrier.
LINES = (
    ("ior", "-F -t 1m -b 512m -o {place}/f"),
    ("ior", "-t 256k -b 512m -o {place}/f"),
    ("mdtest", "-F -u -n 60000 -d {place}/md"),
    ("mdtest", "-D -u -n 40000 -d {place}/md"),
    ("mdtest", "-F -n 40000 -N 1 -d {place}/md"),
    ("mdtest", "-F -u -L -z 2 -b 4 -I 3000 -d {place}/md"),
    ("mdtest", "-F -u -z 2 -b 4 -n 63000 -d {place}/md"),
    ("mdtest", "-F -u -n 20000 -w 3901 -e 3901 -d {place}/md"),
)
MARGIN = 0.1


def original(words: list[str], directory: Path) -> dict[str, float]:
    """Run the original tool once. Return the rate of each figure that it prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=True)
        file.write(done.stdout)
        file.flush()
        return {figure.name: figure.values[0] for figure in read_file(Path(file.name)).tests[0].figures}


def ours(engine: LocalEngine, tool: str, line: str, ranks: int, workspace: Path, index: int) -> dict[str, float]:
    """Run a command line of IOR or mdtest on our engine. Return the rate of each phase."""
    plan = tool_of(tool).translate(shlex.split(line), ranks, 1).plan
    result = engine.run(plan, workspace, f"{tool}{index}", 120.0)
    metric = "bytes_per_s" if tool == "ior" else "operations_per_s"
    return {sample.name: float(getattr(sample, metric)) for sample in result.samples}


def pairs(
    place: Place, theirs: Callable[[], dict[str, float]], own: Callable[[int], dict[str, float]], rounds: int
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Run the original and the engine alternately. Return (original's figures, engine's figures) of each round.

    In every other round the engine is first. Dirty data are written back before each run.
    """
    done = []
    for index in range(rounds):
        both: dict[bool, dict[str, float]] = {}
        for is_own in (False, True) if index % 2 == 0 else (True, False):
            place.settle()
            both[is_own] = own(index) if is_own else theirs()
        done.append((both[False], both[True]))
    return done


def compare(place: str, line: str, rounds: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> list[str]:
    """Return a table row for each figure that the original and the engine have."""
    names = [name for name in rounds[0][1] if all(name in theirs and name in own for theirs, own in rounds)]
    sides = {
        name: ({i: pair[0][name] for i, pair in enumerate(rounds)}, {i: pair[1][name] for i, pair in enumerate(rounds)})
        for name in names
    }
    rows = []
    for name, judged in zip(names, judge([within_blocks(*sides[name]) for name in names], 0.9, MARGIN), strict=True):
        theirs, own = (median(list(side.values())) for side in sides[name])
        unit = "B/s" if name in ("write", "read") else "op/s"
        interval = judged.ratio.interval
        bounds = f"[{interval.low:.2f} - {interval.high:.2f}]" if interval else "[too few rounds]"
        cells = (
            place,
            f"`{line}`",
            name,
            show(theirs, unit),
            show(own, unit),
            f"{judged.ratio.median:.2f} {bounds}",
            judged.verdict,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def whole(place: Place, ior: str, mpiexec: str, rounds: int) -> Iterator[str]:
    """Yield table rows that compare the wall times and processor times of ior and of strakes run ior."""
    line = ["-b", "1m", "-o", str(place.directory / "whole")]
    commands = ([ior, *line], [*shlex.split(mpiexec), "-n", "1", ior, *line], ["strakes", "run", "ior", *line])
    times: list[list[tuple[float, float]]] = [[] for _ in commands]
    # With PYTHONDONTWRITEBYTECODE, each run would compile all modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(commands[-1], capture_output=True, check=True)
    for _ in range(rounds):
        for words, of_command in zip(commands, times, strict=True):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(words, capture_output=True, check=True)
            wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            of_command.append((wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    for index, name in enumerate(("wall time", "processor time")):
        alone, launched, own = (median([pair[index] for pair in of_command]) for of_command in times)
        cells = (f"{alone:.3f} s", f"{launched:.3f} s", f"{own:.3f} s", f"{own / alone:.2f}", f"{own / launched:.2f}")
        yield f"| {place.name} | {name} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=DIR")
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--ior")
    parser.add_argument("--mdtest")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="", help="only command lines that contain this text")
    parser.add_argument("--whole", action="store_true", help="measure whole commands, from start to exit")
    options = parser.parse_args()
    if options.whole:
        print("| on | what | ior | mpiexec ior | strakes | / ior | / mpiexec ior |\n|---|---|---|---|---|---|---|")
        for place in given_places(options.places):
            print(*whole(place, options.ior, options.mpiexec, options.rounds), sep="\n")
        return 0
    print(
        "| on | command line | figure | original | strakes | ratio, 90 % for all of a line | strakes is "
        "|\n|---|---|---|---|---|---|---|"
    )
    for place in given_places(options.places):
        with LocalEngine() as engine, Workspace.create(place.directory, "command-lines") as workspace:
            engine.start()
            for tool, line in LINES:
                program = getattr(options, tool)
                if program is None or options.only not in f"{tool} {line}":
                    continue
                placed = line.format(place=place.directory)
                words = [options.mpiexec, "-n", str(options.ranks), program, *shlex.split(placed)]
                rounds = pairs(
                    place,
                    partial(original, words, place.directory),
                    partial(ours, engine, tool, placed, options.ranks, workspace.path),
                    options.rounds,
                )
                print("\n".join(compare(place.name, f"{tool} {line.format(place='DIR')}", rounds)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
