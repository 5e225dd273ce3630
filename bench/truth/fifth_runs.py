"""Surveys of the fifth set: ``python -m bench.truth.fifth_runs FILE [--seed 0] [--only NAME] [--budget 350]`` judges them, ``--tell`` shows them."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from bench.truth.fifth import fifth, truth_named
from bench.truth.fifth_judge import Sentence, World, judge, told
from bench.truth.fifth_noise import Disturbance, noise_named, noises
from bench.truth.fifth_world import Fifth, Machine
from bench.truth.simulated import survey
from strakes.cli.main import main as strakes
from strakes.studies.registry import SURVEY

GRADES = ("severe", "moderate", "slight")


@dataclass(frozen=True)
class Judged:
    truth: str
    noise: str
    seed: int
    told: bool | None
    text: str
    sentences: tuple[Sentence, ...]

    @property
    def false(self) -> tuple[Sentence, ...]:
        return tuple(sentence for sentence in self.sentences if sentence.answer == "false")

    @property
    def worst(self) -> str:
        grades = {sentence.grade for sentence in self.false}
        return next((grade for grade in GRADES if grade in grades), "")


def make(truth: Fifth, noise: Disturbance, seed: int) -> Judged:
    """Make a survey and judge what a user would read of it."""
    machine = Machine(truth, seed)
    with tempfile.TemporaryDirectory() as place:
        # Neither is one of the first sets; the engine asks them for the same things.
        run, _ = survey(cast("Any", machine), cast("Any", noise), seed, SURVEY, Path(place))
        report, text = read(Path(place) / "store", run.id)
        sentences = judge(report, text, World(run, machine, noise))
    return Judged(truth.name, noise.name, seed, told(report, truth, sentences), text, tuple(sentences))


def read(store: Path, run_id: str) -> tuple[dict[str, Any], str]:
    """Return a report as JSON and as text on a terminal."""
    file, printed = store / "report.json", io.StringIO()
    with (
        patch.dict(os.environ, {"STRAKES_STORE": str(store)}),
        patch.object(sys, "argv", ["strakes", "report", run_id, "--json", str(file)]),
        contextlib.redirect_stdout(printed),
    ):
        strakes()
    return json.loads(file.read_text(encoding="utf-8")), printed.getvalue()


def _kept(file: Path) -> Iterator[Judged]:
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            yield Judged(**{**record, "sentences": tuple(Sentence(**one) for one in record["sentences"])})


def _share(name: str, judged: Sequence[Judged]) -> str:
    count = len(judged)
    worst = Counter(one.worst for one in judged)
    parts = [f"{grade} {worst[grade]}" for grade in GRADES]
    asked = [one.told for one in judged if one.told is not None]
    said = f"{100 * sum(asked) / len(asked):.0f} %" if asked else "-"
    false = count - worst[""]
    return f"| {name} | {count} | {false} ({100 * false / count:.0f} %) | {' | '.join(parts)} | {said} |"


def table(judged: Sequence[Judged]) -> str:
    """Rates by group, noise and truth."""
    lines = [
        "| of | surveys | with a false sentence | worst: severe | moderate | slight | truth or cause said |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: list[tuple[str, Callable[[Fifth, Disturbance], bool]]] = [
        ("nothing to find", lambda truth, _: truth.nothing),
        ("planted", lambda truth, _: not truth.nothing),
        ("planted, everyday truth and noise", lambda truth, noise: not truth.nothing and truth.everyday and noise.everyday),
        ("planted, everyday truth", lambda truth, _: not truth.nothing and truth.everyday),
        ("planted, adversarial truth", lambda truth, _: not truth.nothing and not truth.everyday),
    ]  # fmt: skip
    groups += [(noise.name, lambda _, other, noise=noise: other.name == noise.name) for noise in noises()]  # type: ignore[misc]
    groups += [(truth.name, lambda other, _, truth=truth: other.name == truth.name) for truth in fifth()]  # type: ignore[misc]
    for name, wanted in groups:
        chosen = [one for one in judged if wanted(truth_named(one.truth), noise_named(one.noise))]
        if chosen:
            lines.append(_share(name, chosen))
    return "\n".join(lines)


def _tell(judged: Judged) -> str:
    lines = [f"== {judged.truth} | {judged.noise} | seed {judged.seed} | told: {judged.told}"]
    for sentence in judged.sentences:
        grade = f" {sentence.grade}" if sentence.grade else ""
        lines.append(f"  [{sentence.answer}{grade}] {sentence.where}: {sentence.text}")
        if sentence.why and sentence.answer == "false":
            lines.append(f"      {sentence.why}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.truth.fifth_runs", description="How often is it false?")
    parser.add_argument(
        "file", type=Path, help="surveys are kept here, one a line; those that are there are not made again"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="truths or noises with this in their name")
    parser.add_argument("--budget", type=int, default=350, help="make so many surveys at most")
    parser.add_argument("--tell", action="store_true", help="show all sentences of surveys with a false one")
    parser.add_argument("--true", type=int, default=0, help="show so many of the others, too, chosen at random")
    arguments = parser.parse_args()
    judged = list(_kept(arguments.file))
    there = {(one.truth, one.noise, one.seed) for one in judged}
    wanted = [
        (truth, noise)
        for noise in noises()
        for truth in fifth()
        if arguments.only in f"{truth.name} {noise.name}" and (truth.name, noise.name, arguments.seed) not in there
    ]
    with arguments.file.open("a", encoding="utf-8") as file:
        for truth, noise in wanted[: arguments.budget]:
            judged.append(make(truth, noise, arguments.seed))
            file.write(f"{json.dumps(asdict(judged[-1]))}\n")
            file.flush()
    false = [one for one in judged if one.false]
    others = [one for one in judged if not one.false]
    chosen = random.Random(5).sample(others, min(arguments.true, len(others)))
    for one in (*(false if arguments.tell else ()), *chosen):
        sys.stdout.write(f"{_tell(one)}\n")
    sys.stdout.write(f"{table(judged)}\n")


if __name__ == "__main__":
    main()
