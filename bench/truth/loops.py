"""Compare surveys of a real directory with loops of IOR and mdtest: ``python -m bench.truth.loops DIR``.

The first survey determines the amounts. With these, IOR and mdtest repeat its settings for the time ``--loop``, in
random order. More surveys follow. The table shows how many clear questions each survey answered, and how many answers
the loops contradict. With ``--script TIME``, a simple rival is judged, too: IOR and mdtest run for TIME, and the best
median wins. Needs ``ior``, ``mdtest``, the launcher of their MPI, root (to drop caches) and a machine without other load. With more
ranks than processors, ranks that wait in a barrier of MPICH take processor time from the others.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from strakes.base.processes import python_module
from strakes.base.units import parse_seconds
from strakes.model.answers import Answer
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.runs.run import Run
from strakes.runs.store import Store
from strakes.stats.grades import GOOD_ENOUGH
from strakes.stats.interval import median, median_interval
from strakes.tuning.portraits import build_portrait

# A question is clear if, with 95 % confidence, two settings differ by more than this factor or none do.
CLEAR = 1.1
_CONFIDENCE = 0.95
_IOR_ROW = re.compile(r"^(write|read)\s+([\d.]+)", re.MULTILINE)
_MDTEST_ROW = re.compile(r"^\s*File (creation|stat|removal)\s+([\d.]+)", re.MULTILINE)

# Rates of one setting by round number.
Rates = dict[int, float]
# Ratio of two settings: median, lower and upper end of its interval.
Ratio = tuple[float, float, float]


def survey(directory: Path, budget: str) -> Run:
    before = {run.id for run in Store().runs()}
    subprocess.run(python_module("strakes", "survey", str(directory), "--budget", budget, "--quiet"), check=True)
    return next(Run(run.path) for run in Store().runs() if run.id not in before)


def loop(
    cells: Sequence[Cell], directory: Path, launcher: Sequence[str], seconds: float, seed: int
) -> dict[str, Rates]:
    """Run the cells repeatedly in random order for ``seconds``. Return the rates by measure and round."""
    rates: dict[str, Rates] = defaultdict(dict)
    order = random.Random(seed)
    end = time.monotonic() + seconds
    for number in itertools.count():
        for cell in order.sample(list(cells), len(cells)):
            if time.monotonic() > end:
                return dict(rates)
            with tempfile.TemporaryDirectory(prefix="loop-", dir=directory) as place:
                os.sync()
                found = _run(cell, Path(place), launcher)
            for measure in cell.measures:
                if not measure.is_side and measure.phase in found:
                    rates[cell.measure_id(measure.suffix)][number] = found[measure.phase]
    raise AssertionError


def _run(cell: Cell, place: Path, launcher: Sequence[str]) -> dict[str, float]:
    def output(words: Sequence[str]) -> str:
        command = [*launcher, "-n", str(cell.plan.ranks), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=place).stdout

    first = cell.plan.phases[0]
    if isinstance(first, MetadataPhase):
        names = {"creation": "file-create", "stat": "file-stat", "removal": "file-remove"}
        return {names[name]: float(rate) for name, rate in _MDTEST_ROW.findall(output(_mdtest(first, place)))}
    assert isinstance(first, TransferPhase)
    text = output(_ior(first, place, "-w", first.direct))
    if any(getattr(phase, "operation", "") == "read" for phase in cell.plan.phases):
        if file_system_of(place).startswith("fuse"):
            # A client in user space caches written data. Write again with O_DIRECT.
            output(_ior(first, place, "-w", direct=True))
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        text += output(_ior(first, place, "-r", first.direct))
    return {name: float(rate) for name, rate in _IOR_ROW.findall(text)}


def file_system_of(place: Path) -> str:
    """Return the type of the mounted file system, as findmnt(8) names it."""
    return subprocess.run(["findmnt", "-no", "FSTYPE", "-T", place], check=True, capture_output=True, text=True).stdout


def _ior(phase: TransferPhase, place: Path, operation: str, direct: bool) -> list[str]:
    own = phase.layout == "file-per-process"
    return [
        *("ior", "-a", "POSIX", operation, "-k", "-e", "-C", "-o", str(place / "data")),
        *(["-F"] if own else []),
        *(["--posix.odirect"] if direct else []),
        *("-t", str(phase.transfer_bytes), "-b", str(phase.block_bytes), "-s", str(phase.segments)),
    ]


def _mdtest(phase: MetadataPhase, place: Path) -> list[str]:
    own = ["-u"] if phase.directory == "unique" else []
    return ["mdtest", "-F", "-C", "-T", "-r", "-n", str(phase.items), *own, "-d", str(place)]


def ratio(one: Rates, other: Rates) -> Ratio:
    """Return median and interval (from order statistics) of the ratio over the common rounds."""
    ratios = [one[number] / other[number] for number in sorted(one.keys() & other.keys())]
    found = median_interval(ratios, _CONFIDENCE)
    if found is None:
        raise SystemExit(f"bench: {len(ratios)} rounds are too few: give a longer --loop")
    return median(ratios), found.low, found.high


def is_clear(answer: Answer, rates: Mapping[str, Rates]) -> bool:
    """Return whether the loops show clearly that two settings differ by more than 10 %, or that no two do."""
    pairs = [ratio(rates[one], rates[other]) for one, other in itertools.combinations(_measures(answer), 2)]
    differ = any(low > CLEAR or high < 1 / CLEAR for _, low, high in pairs)
    return differ or all(low >= 1 / CLEAR and high <= CLEAR for _, low, high in pairs)


def is_contradicted(answer: Answer, rates: Mapping[str, Rates]) -> bool:
    """Return whether the results of IOR and mdtest contradict the survey's answer."""
    chosen = rates[answer.measure]
    others = [ratio(rates[one.measure], chosen) for one in answer.others]
    if answer.grade == "alike":
        within = max(CLEAR, answer.within or 1.0)
        return any(low > within or high < 1 / within for _, low, high in others)
    _, against, _ = ratio(rates[answer.against.measure], chosen)
    return answer.grade != "undecided" and (against > 1 or any(low > GOOD_ENOUGH for _, low, _ in others))


def _measures(answer: Answer) -> list[str]:
    return [answer.measure, *(one.measure for one in answer.others)]


def _line(answer: Answer, rates: Mapping[str, Rates]) -> str:
    against = answer.against
    middle, low, high = ratio(rates[answer.measure], rates[against.measure])
    kind = "clear" if is_clear(answer, rates) else "open"
    wrong = "  CONTRADICTED" if is_contradicted(answer, rates) else ""
    return (
        f"  {kind:5}  {answer.id:24} {answer.grade:9} {answer.chosen:>20} / {against.option:20} "
        f"{against.ratio:.2f} [{against.low:.2f}-{against.high:.2f}]  loops {middle:.2f} [{low:.2f}-{high:.2f}]{wrong}"
    )


def script_result(answers: Sequence[Answer], rates: Mapping[str, Rates], script: Mapping[str, Rates]) -> str:
    """Return the numbers of clear questions that a short script answers right and wrong, as text."""
    right = wrong = missing = 0
    for answer in answers:
        measures = _measures(answer)
        pairs = {(one, other): ratio(rates[one], rates[other])[1] for one in measures for other in measures}
        if is_clear(answer, rates) and max(pairs.values()) > CLEAR:
            known = [one for one in measures if script.get(one)]
            best = max(known, key=lambda one: median(list(script[one].values())), default="")
            missing += len(known) < len(measures)
            wrong += len(known) == len(measures) and any(pairs[one, best] > CLEAR for one in measures)
            right += len(known) == len(measures) and all(pairs[one, best] <= CLEAR for one in measures)
    return f"script of IOR and mdtest: {right} right, {wrong} wrong, {missing} not measured"


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep ``count`` processes busy while the block runs."""
    processes = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _share_of_best(answers: Sequence[Answer], rates: Mapping[str, Rates], operation: str) -> float:
    """Return rate of the chosen setting / best rate, as geometric mean over the answers for ``operation``."""
    losses = []
    for answer in answers:
        if answer.id.endswith(f"-{operation}") and answer.grade in ("sure", "likely", "alike"):
            best = max(ratio(rates[one], rates[answer.measure])[0] for one in _measures(answer))
            losses.append(math.log(max(1.0, best)))
    return math.exp(-sum(losses) / len(losses)) if losses else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--surveys", type=int, default=5)
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--loop", type=parse_seconds, default=parse_seconds("10m"))
    parser.add_argument("--launcher", type=shlex.split, default=["mpirun"], help="e.g. 'mpirun --oversubscribe'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="write the rates of the loops to this JSON file")
    parser.add_argument("--script", type=parse_seconds, help="time of a script of IOR and mdtest, e.g. 2m")
    parser.add_argument("--busy", type=int, default=0, help="number of surveys during which four processes are busy")
    asked = parser.parse_args()
    for program in ("ior", "mdtest", asked.launcher[0]):
        if shutil.which(program) is None:
            raise SystemExit(f"bench: {program} is not on PATH")
    runs = [survey(asked.directory, asked.budget)]
    cells = [cell for cell in runs[0].cells if cell.study == "overview"]
    rates = loop(cells, asked.directory, asked.launcher, asked.loop, asked.seed)
    if asked.keep:
        asked.keep.write_text(json.dumps(rates))
    print(f"loops: {min(map(len, rates.values()))} rounds; load {os.getloadavg()[1]:.1f}")
    script = loop(cells, asked.directory, asked.launcher, asked.script, asked.seed + 1) if asked.script else {}
    runs += [survey(asked.directory, asked.budget) for _ in range(asked.surveys - 1)]
    with busy_processes(4 if asked.busy else 0):
        loaded = [survey(asked.directory, asked.budget) for _ in range(asked.busy)]
    for run in [*runs, *loaded]:
        answers = [answer for answer in build_portrait(run).answers if set(_measures(answer)) <= rates.keys()]
        if run is runs[0] and script:
            print(script_result(answers, rates, script))
        clear = [answer for answer in answers if is_clear(answer, rates)]
        given = [answer for answer in clear if answer.grade != "undecided"]
        wrong = [answer for answer in answers if is_contradicted(answer, rates)]
        shares = ", ".join(f"{each}s {_share_of_best(answers, rates, each):.2f}" for each in ("write", "read"))
        print(
            f"{run.id}{' with busy processes' * (run in loaded)}: {len(given)} of {len(clear)} clear answered, "
            f"{len(wrong)} contradicted; of the best: {shares}"
        )
        print("\n".join(_line(answer, rates) for answer in answers), flush=True)


if __name__ == "__main__":
    main()
