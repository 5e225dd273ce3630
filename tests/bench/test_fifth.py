"""The fifth set of truths: what it plants, and that its judge tells false sentences from true ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from bench.truth.fifth import fifth
from bench.truth.fifth_judge import Sentence, World, judge, told
from bench.truth.fifth_noise import noises
from bench.truth.fifth_runs import read
from bench.truth.fifth_world import Fifth, Machine, Shape
from bench.truth.simulated import survey

from strakes.studies.registry import SURVEY

# One rank writes at 0.6 of four; nothing changes.
CONSTANT = Fifth(
    "constant",
    everyday=True,
    about="one rank writes at 0.6 of four",
    false=("one rank suffices",),
    shape=Shape(write_ranks={1: 0.6, 2: 1, 4: 1, 8: 1}),
    factor=lambda _now, _phase, _ranks: 1.0,
    shown=((r"node/[248]:write", r"node/1:write"),),
)
ONE, FOUR = "processes-per-node/1:write", "processes-per-node/4:write"


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, World]:
    place = tmp_path_factory.mktemp("fifth")
    machine, noise = Machine(CONSTANT, 3), noises()[0]
    run, _ = survey(cast("Any", machine), cast("Any", noise), 3, SURVEY, Path(place))
    report, text = read(place / "store", run.id)
    return report, text, World(run, machine, noise)


def judged(surveyed: tuple[dict[str, Any], str, World], **made_up: Any) -> list[Sentence]:
    """Judge a report that says this and nothing else."""
    report, text, world = surveyed
    empty: dict[str, Any] = {"findings": [], "recommendations": [], "headlines": [], "warnings": []}
    return judge({**report, **empty, **made_up}, text, world)


def finding(statement: str, low: float | None, high: float | None, of: str = ONE, to: str = FOUR) -> dict[str, Any]:
    claims = [{"of": of, "to": to, "low": low, "high": high}]
    return {"id": "made-up", "statement": statement, "verdict": "measured", "claims": claims, "evidence": [of, to]}


def test_half_of_the_truths_are_everyday_and_some_have_nothing_to_find() -> None:
    truths = fifth()
    assert len({truth.name for truth in truths}) == len(truths) >= 30
    assert 0.4 < sum(truth.everyday for truth in truths) / len(truths) < 0.6
    assert sum(truth.nothing for truth in truths) >= 4
    assert len(noises()) >= 6
    assert all(truth.about and truth.false for truth in truths)


def test_of_a_constant_world_nothing_false_is_said(surveyed: tuple[dict[str, Any], str, World]) -> None:
    report, text, world = surveyed
    sentences = judge(report, text, world)
    assert [sentence for sentence in sentences if sentence.answer == "false"] == []
    assert sum(sentence.answer == "true" for sentence in sentences) > 15
    assert told(report, CONSTANT, sentences)


@pytest.mark.parametrize(
    ("low", "high", "answer", "grade"),
    [
        (0.55, 0.65, "true", None),
        (None, 0.7, "true", None),
        (0.9, None, "false", "severe"),
        (0.62, 0.7, "false", "slight"),
    ],
)
def test_a_claim_is_held_against_what_was_true(
    surveyed: tuple[dict[str, Any], str, World], low: float | None, high: float | None, answer: str, grade: str | None
) -> None:
    said = judged(surveyed, findings=[finding("1 rank against 4.", low, high)])[0]
    assert (said.answer, said.grade) == (answer, grade)


def test_advice_is_held_against_every_other_setting(surveyed: tuple[dict[str, Any], str, World]) -> None:
    advice = {"setting": "processes", "value": "1", "reason": "enough", "confirmed": True, "evidence": [ONE, FOUR]}
    one = judged(surveyed, recommendations=[{**advice, "claims": []}])[0]
    four = judged(surveyed, recommendations=[{**advice, "claims": [], "evidence": [FOUR, ONE]}])[0]
    assert (one.answer, one.grade, four.answer) == ("false", "severe", "true")


def test_warnings_of_what_was_not_are_false(surveyed: tuple[dict[str, Any], str, World]) -> None:
    warnings = [
        {"code": code, "text": text}
        for code, text in (("cache-suspect", "reads"), ("drift", "slower"), ("short-phases", "29 of 41"))
    ]
    assert [one.answer for one in judged(surveyed, warnings=warnings)[:3]] == ["false", "false", "undecided"]
