"""Rates of false sentences: ``python -m bench.truth [--surveys 200] [--planted 100] [docs/statistics.md]`` writes the table there."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from bench.simulate.document import placed
from bench.truth.judge import Verdict, judge
from bench.truth.noise import Noise, dependent, drifting, five, log_normal, stalls
from bench.truth.planted import truth_named, truths
from bench.truth.simulated import portrait_of, survey
from strakes.studies.registry import SURVEY

EQUAL = "all cells equal"


def noise_named(name: str) -> Noise:
    """Raises StopIteration for a name that none has."""
    every = (*five(), log_normal(0.05), stalls(0.3), dependent(0.5), drifting(0.1))
    return next(noise for noise in every if noise.name == name)


def one_survey(truth: str, noise: str, seed: int) -> Verdict:
    """Make a survey and judge it; everything is named, so that processes can share the work."""
    with tempfile.TemporaryDirectory() as place:
        run = survey(truth_named(truth), noise_named(noise), seed, SURVEY, Path(place))
        return judge(run, portrait_of(run), truth_named(truth), noise_named(noise))


def verdicts(truth: str, noise: str, surveys: int, processes: int) -> list[Verdict]:
    """Judge that many surveys of one truth."""
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(one_survey, truth, noise), range(surveys)))


def rows(equal: int, planted: int, processes: int) -> Iterator[tuple[str, str, list[Verdict]]]:
    """All equal under five noises; every planted truth with 5 % of noise."""
    for noise in five():
        yield EQUAL, noise.name, verdicts(EQUAL, noise.name, equal, processes)
    usual = log_normal(0.05).name
    for truth in truths():
        if truth.name != EQUAL:
            yield truth.name, usual, verdicts(truth.name, usual, planted, processes)


def line(truth: str, noise: str, judged: list[Verdict]) -> str:
    """One row of the table."""
    surveys = len(judged)
    false = sum(bool(one.false) for one in judged) / surveys
    told = "" if truth == EQUAL else f"{100 * sum(one.told for one in judged) / surveys:.0f} %"
    decided, confirmed = (
        sum(values) / surveys for values in zip(*((v.decided, v.confirmed) for v in judged), strict=True)
    )
    return f"| {truth} | {noise} | {surveys} | {100 * false:.1f} % | {told} | {decided:.1f} | {confirmed:.1f} |"


HEAD = (
    "| planted | noise | surveys | with a false sentence | truth or cause said | decided findings | settings confirmed |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def main() -> None:
    """Make the surveys and write the table, or print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.truth", description="How often is a survey's report false?")
    parser.add_argument("document", nargs="?", type=Path, help="write the table into this document")
    parser.add_argument("--surveys", type=int, default=200, help="of each noise, with all cells equal")
    parser.add_argument("--planted", type=int, default=100, help="of each planted truth")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tell", action="store_true", help="name the false sentences")
    arguments = parser.parse_args()
    table = partial(_table, arguments)
    if arguments.document is None:
        sys.stdout.write(f"{table()}\n")
    else:
        text = arguments.document.read_text(encoding="utf-8")
        arguments.document.write_text(placed(text, "truth", table), encoding="utf-8")


def _table(arguments: argparse.Namespace) -> str:
    lines = [HEAD]
    for truth, noise, judged in rows(arguments.surveys, arguments.planted, arguments.processes):
        lines.append(line(truth, noise, judged))
        sys.stderr.write(f"{lines[-1]}\n")
        if arguments.tell:
            for text in sorted({text for one in judged for text in one.false})[:8]:
                sys.stderr.write(f"    {text}\n")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
