"""Rates of false sentences: ``python -m bench.truth [--surveys 200] [--planted 100] [docs/statistics.md]`` writes the table there."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from bench.simulate.document import placed
from bench.truth.judge import Verdict, judge
from bench.truth.noise import five, log_normal, more_noises, noise_named
from bench.truth.planted import more_truths, truth_named, truths
from bench.truth.results import Case, Results
from bench.truth.simulated import portrait_of, survey
from strakes.studies.registry import SURVEY

EQUAL = "all cells equal"
USUAL = log_normal(0.05).name

HEAD = (
    "| planted | noise | surveys | with a false sentence | truth or cause said | decided findings "
    "| settings confirmed | intervals that hold |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def judge_survey(case: Case, seed: int) -> Verdict:
    """Make a survey and judge it."""
    truth, noise = truth_named(case.truth), noise_named(case.noise)
    with tempfile.TemporaryDirectory() as place:
        run = survey(truth, noise, seed, SURVEY, Path(place))
        return judge(run, portrait_of(run), truth, noise)


def cases() -> tuple[list[Case], list[Case]]:
    """Return all cells equal under every noise, and every planted truth with 5 % of noise."""
    equal = [Case(EQUAL, noise.name) for noise in (*five(), *more_noises())]
    planted = [Case(truth.name, USUAL) for truth in (*truths(), *more_truths()) if truth.name != EQUAL]
    return equal, planted


def line(case: Case, verdicts: Sequence[Verdict]) -> str:
    """One row of the table."""
    surveys = len(verdicts)
    false = sum(bool(verdict.false) for verdict in verdicts)
    told = "" if case.truth == EQUAL else f"{100 * sum(verdict.told for verdict in verdicts) / surveys:.0f} %"
    decided = sum(verdict.decided for verdict in verdicts) / surveys
    confirmed = sum(verdict.confirmed for verdict in verdicts) / surveys
    intervals = sum(verdict.intervals for verdict in verdicts)
    held = f"{100 * sum(verdict.held for verdict in verdicts) / intervals:.0f} %" if intervals else "none given"
    return (
        f"| {case.truth} | {case.noise} | {surveys} | {100 * false / surveys:.1f} % | {told} | {decided:.1f} "
        f"| {confirmed:.1f} | {held} |"
    )


def main() -> None:
    """Make the surveys and write the table, or print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.truth", description="How often is a survey's report false?")
    parser.add_argument("document", nargs="?", type=Path, help="write the table into this document")
    parser.add_argument("--surveys", type=int, default=200, help="of each noise, with all cells equal")
    parser.add_argument("--planted", type=int, default=100, help="of each planted truth")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--results", type=Path, help="keep verdicts here, and go on with those that are there")
    parser.add_argument("--only", default="", help="cases whose truth or noise has this in its name")
    parser.add_argument("--tell", action="store_true", help="name the false sentences")
    arguments = parser.parse_args()
    table = partial(_table, arguments)
    if arguments.document is None:
        sys.stdout.write(f"{table()}\n")
    else:
        text = arguments.document.read_text(encoding="utf-8")
        arguments.document.write_text(placed(text, "truth", table), encoding="utf-8")


def _table(arguments: argparse.Namespace) -> str:
    results = Results(arguments.results)
    equal, planted = cases()
    wanted = [
        (case, count)
        for group, count in ((equal, arguments.surveys), (planted, arguments.planted))
        for case in group
        if arguments.only in f"{case.truth} {case.noise}"
    ]
    results.make(_in_turn(wanted), arguments.processes, judge_survey)
    lines = [HEAD]
    for case, _ in wanted:
        verdicts = results.verdicts(case)
        if not verdicts:
            continue
        lines.append(line(case, verdicts))
        if arguments.tell:
            sys.stderr.write(f"{lines[-1]}\n")
            for text in sorted({text for verdict in verdicts for text in verdict.false})[:12]:
                sys.stderr.write(f"    {text}\n")
    return "\n".join(lines)


def _in_turn(wanted: Sequence[tuple[Case, int]]) -> Iterator[tuple[Case, int]]:
    """Return every case once, then again: whoever ends it early has as many of each."""
    most = max((count for _, count in wanted), default=0)
    return chain.from_iterable(((case, seed) for case, count in wanted if seed < count) for seed in range(most))


if __name__ == "__main__":
    main()
