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
from bench.truth.hard import hard
from bench.truth.judge import Verdict, judge
from bench.truth.newest import every_truth, newest_truths, truth_named
from bench.truth.noise import Noise, five, later_noises, log_normal, more_noises, noise_named
from bench.truth.parts import parts
from bench.truth.planted import Truth, truths
from bench.truth.results import Case, Results
from bench.truth.second import second
from bench.truth.simulated import portrait_of, survey
from bench.truth.unforeseen import unforeseen
from bench.truth.unsteady import unsteady
from strakes.studies.registry import SURVEY

EQUAL = "all cells equal"
USUAL = log_normal(0.05).name

# Of the longest survey that harness and reader have the time for, with phases as long as neighbours come and go.
LONG_S = 600.0

HEAD = (
    "| planted | noise | surveys | with a false sentence | truth or cause said | decided findings "
    "| settings confirmed | intervals that hold |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def judge_survey(case: Case, seed: int) -> Verdict:
    """Make a survey and judge it."""
    truth, noise = truth_named(case.truth), noise_named(case.noise)
    with tempfile.TemporaryDirectory() as place:
        run, met = survey(truth, noise, seed, SURVEY, Path(place), case.budget_s)
        return judge(run, portrait_of(run), met, noise)


def cases() -> tuple[list[Case], list[Case]]:
    """Return all cells equal under every noise, and every planted truth with 5 % of noise."""
    equal = [Case(EQUAL, noise.name) for noise in (*five(), *more_noises(), *later_noises(), *unsteady())]
    planted = [Case(truth.name, USUAL) for truth in every_truth() if truth.name != EQUAL]
    return equal, planted


def core_cases() -> tuple[list[Case], list[Case]]:
    """Return all cells equal under five noises, and ten truths with 5 % of noise: what the rates are promised for."""
    planted = [Case(truth.name, USUAL) for truth in truths() if truth.name != EQUAL]
    return [Case(EQUAL, noise.name) for noise in five()], planted


def newest_cases() -> tuple[list[Case], list[Case]]:
    """Return the newest truths under the five noises, and those that come and go in surveys of ten minutes."""
    pairs = [Case(truth.name, noise.name) for truth in newest_truths() for noise in five()]
    passing = [Case(truth.name, USUAL, LONG_S) for truth in every_truth() if truth.passing]
    return pairs, passing


def unforeseen_cases() -> tuple[list[Case], list[Case]]:
    """Return all cells equal, and planted truths, of :mod:`bench.truth.unforeseen`."""
    return _cases_of(unforeseen())


def second_cases() -> tuple[list[Case], list[Case]]:
    """Return all cells equal, and planted truths, of :mod:`bench.truth.second`."""
    return _cases_of(second())


def _cases_of(pairs: Sequence[tuple[Truth, Noise]]) -> tuple[list[Case], list[Case]]:
    every = [Case(truth.name, noise.name) for truth, noise in pairs]
    return [case for case in every if case.truth == EQUAL], [case for case in every if case.truth != EQUAL]


def parts_cases() -> tuple[list[Case], list[Case]]:
    """Return nothing equal, and the truths of :mod:`bench.truth.parts` under two noises."""
    return [], [Case(truth.name, noise) for truth in parts() for noise in (USUAL, log_normal(0.1).name)]


def hard_cases() -> tuple[list[Case], list[Case]]:
    """Return all cells equal, and planted truths, of :mod:`bench.truth.hard`."""
    return _cases_of(hard())


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
        f"| {case.truth}{', 10 minutes' if case.budget_s == LONG_S else ''} | {case.noise} | {surveys} | {100 * false / surveys:.1f} % | {told} | {decided:.1f} "
        f"| {confirmed:.1f} | {held} |"
    )


def main() -> None:
    """Make the surveys and write the table, or print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.truth", description="How often is a survey's report false?")
    parser.add_argument("document", nargs="?", type=Path, help="write the table into this document")
    parser.add_argument("--surveys", type=int, default=200, help="of each noise, with all cells equal")
    parser.add_argument("--planted", type=int, default=100, help="of each planted truth")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each survey of a case has the next one")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--results", type=Path, help="keep verdicts here, and go on with those that are there")
    parser.add_argument("--only", default="", help="cases whose truth or noise has this in its name")
    parser.add_argument(
        "--newest", action="store_true", help="make the table of the newest truths, each under five noises"
    )
    parser.add_argument("--unforeseen", action="store_true", help="make the table of what was once unseen")
    parser.add_argument("--second", action="store_true", help="make the table of the second set of unseen truths")
    parser.add_argument("--hard", action="store_true", help="make the table of what was made with the rules in view")
    parser.add_argument("--parts", action="store_true", help="make the table of changes of a part of the work")
    parser.add_argument("--core", action="store_true", help="make the table of five noises and of ten truths")
    parser.add_argument("--tell", action="store_true", help="name the false sentences")
    arguments = parser.parse_args()
    table = partial(_table, arguments)
    block = next(
        (name for name in ("core", "unforeseen", "second", "hard", "parts", "newest") if getattr(arguments, name)),
        "truth",
    )
    if arguments.document is None:
        sys.stdout.write(f"{table()}\n")
    else:
        text = arguments.document.read_text(encoding="utf-8")
        arguments.document.write_text(placed(text, block, table), encoding="utf-8")


def _table(arguments: argparse.Namespace) -> str:
    results = Results(arguments.results)
    sets = {
        "core": core_cases,
        "unforeseen": unforeseen_cases,
        "second": second_cases,
        "hard": hard_cases,
        "parts": parts_cases,
        "newest": newest_cases,
    }
    equal, planted = next((made for name, made in sets.items() if getattr(arguments, name)), cases)()
    wanted = [
        (case, count)
        for group, count in ((equal, arguments.surveys), (planted, arguments.planted))
        for case in group
        if arguments.only in f"{case.truth} {case.noise}"
    ]
    first = arguments.seed
    results.make(_in_turn(wanted, first), arguments.processes, judge_survey)
    verdicts_of = {case: results.verdicts(case, range(first, first + count)) for case, count in wanted}
    lines = [f"Seeds from {first} on.", "", HEAD]
    for case, verdicts in verdicts_of.items():
        if not verdicts:
            continue
        lines.append(line(case, verdicts))
        if arguments.tell:
            sys.stderr.write(f"{lines[-1]}\n")
            for text in sorted({text for verdict in verdicts for text in verdict.false})[:12]:
                sys.stderr.write(f"    {text}\n")
    names = ("the newest truths", "surveys of ten minutes") if arguments.newest else (EQUAL, "planted")
    groups = dict(zip(names, (equal, planted), strict=True))
    told = [
        _together(name, [verdicts_of[case] for case in group if case in verdicts_of]) for name, group in groups.items()
    ]
    return "\n".join([*lines, "", *filter(None, told)])


def _together(name: str, of_cases: Sequence[Sequence[Verdict]]) -> str:
    """How often a survey of a group of cases errs, in words."""
    verdicts = [verdict for of_case in of_cases for verdict in of_case]
    if not verdicts:
        return ""
    false = sum(bool(verdict.false) for verdict in verdicts)
    worst = max(sum(bool(verdict.false) for verdict in of_case) / len(of_case) for of_case in of_cases if of_case)
    return (
        f"Of {len(verdicts):,} surveys ({name}), {false} say something false: {100 * false / len(verdicts):.1f} %; "
        f"of the worst case {100 * worst:.1f} %; "
        f"{sum(one.decided for one in verdicts) / len(verdicts):.1f} findings are decided and "
        f"{sum(one.confirmed for one in verdicts) / len(verdicts):.1f} settings confirmed.  "
    )


def _in_turn(wanted: Sequence[tuple[Case, int]], first: int) -> Iterator[tuple[Case, int]]:
    """Return every case once, then again: whoever ends it early has as many of each."""
    most = max((count for _, count in wanted), default=0)
    return chain.from_iterable(
        ((case, first + number) for case, count in wanted if number < count) for number in range(most)
    )


if __name__ == "__main__":
    main()
