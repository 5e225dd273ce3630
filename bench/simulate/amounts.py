"""What short surveys make of their time: ``python -m bench.simulate.amounts`` prints a table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from bench.truth.__main__ import EQUAL, cases
from bench.truth.judge import judge
from bench.truth.newest import truth_named
from bench.truth.noise import noise_named
from bench.truth.results import Case
from bench.truth.simulated import portrait_of, survey
from strakes.analysis.amounts import bursts
from strakes.analysis.build import results_of
from strakes.studies.registry import SURVEY

# Of the planted truths each third one, another third with each seed.
_EVERY = 3
HEAD = (
    "| surveys | | cells | blocks | median phase | decided findings | settings confirmed | headlines in bursts "
    "| half-width of their intervals | headlines without an interval | truth or cause said | with a false sentence |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass(frozen=True)
class Made:
    """One survey: what it measured, how it did so, and what it says."""

    cells: int
    blocks: int
    phase_s: float
    decided: int
    confirmed: int
    headlines: int
    in_bursts: int
    without_interval: int
    half_width: float | None
    told: bool
    false: bool


def make(case: Case, seed: int, budget_s: float) -> Made:
    """Make a survey and look at it."""
    noise = noise_named(case.noise)
    with tempfile.TemporaryDirectory() as place:
        run, met = survey(truth_named(case.truth), noise, seed, SURVEY, Path(place), budget_s)
        portrait, short = portrait_of(run), bursts(results_of(run))
        verdict = judge(run, portrait, met, noise)
        visits = [visit for visit in run.visits if visit.is_measurement]
        estimates = {cell.id: cell for cell in portrait.cells}
        lines = [estimates[line.cell] for line in portrait.headlines]
        widths = [
            (one.high - one.low) / 2 / one.median for one in lines if one.low is not None and one.high is not None
        ]
        return Made(
            len(run.cells),
            max(visit.block for visit in visits),
            median([sample.elapsed_s for visit in visits for sample in visit.samples]),
            verdict.decided,
            verdict.confirmed,
            len(lines),
            sum(line.id in short for line in lines),
            len(lines) - len(widths),
            median(widths) if widths else None,
            verdict.told,
            bool(verdict.false),
        )


def row(name: str, made: list[Made]) -> str:
    """Return one row of the table."""

    def mean(key: str) -> float:
        return fmean(getattr(one, key) for one in made)

    widths = fmean(one.half_width for one in made if one.half_width is not None)
    lines = sum(one.headlines for one in made)
    return (
        f"| {name}, {len(made)} | | {mean('cells'):.1f} | {mean('blocks'):.1f} | {mean('phase_s'):.2f} s "
        f"| {mean('decided'):.1f} | {mean('confirmed'):.1f} | {mean('in_bursts'):.2f} of {mean('headlines'):.1f} "
        f"| {100 * widths:.0f} % | {sum(one.without_interval for one in made)} of {lines} "
        f"| {sum(one.told for one in made)} | {sum(one.false for one in made)} |"
    )


def main() -> None:
    """Make the surveys, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulate.amounts", description="What is in a budget?")
    parser.add_argument("--seed", type=int, default=88000, help="the first one")
    parser.add_argument("--equal", type=int, default=2, help="surveys of each noise, with all cells equal")
    parser.add_argument("--planted", type=int, default=3, help="surveys for each third planted truth")
    parser.add_argument("--budget", type=float, default=120.0, help="of each survey, in seconds")
    arguments = parser.parse_args()
    equal, planted = cases()
    groups: dict[str, Iterator[tuple[Case, int]]] = {
        EQUAL: ((case, arguments.seed + number) for number in range(arguments.equal) for case in equal),
        "planted truths": (
            (case, arguments.seed + number)
            for number in range(arguments.planted)
            for case in planted[number % _EVERY :: _EVERY]
        ),
    }
    made = {name: [make(case, seed, arguments.budget) for case, seed in wanted] for name, wanted in groups.items()}
    rows = [row(name, of_group) for name, of_group in made.items() if of_group]
    sys.stdout.write("\n".join([HEAD, *rows, ""]))


if __name__ == "__main__":
    main()
