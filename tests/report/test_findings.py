"""The JSON document of the findings conforms to its schema and can be read back as the portrait."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from report.example import DOCUMENT, HOSTILE_PATH, example_portrait
from strakes.base.errors import BadInputError
from strakes.model.portrait import Portrait
from strakes.model.record import from_record
from strakes.report.findings import to_document, validate


def example_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(to_document(example_portrait()), allow_nan=False))
    return document


def test_the_document_is_the_portrait_as_plain_values() -> None:
    assert example_document() == json.loads(json.dumps(asdict(example_portrait())))
    assert json.dumps(example_document(), indent=1) + "\n" == DOCUMENT.read_text(encoding="utf-8")


def test_the_document_keeps_to_the_schema_and_gives_the_portrait_back() -> None:
    portrait = example_portrait()
    validate(example_document())
    again = from_record(Portrait, example_document())
    assert again == portrait and again.target["path"] == HOSTILE_PATH


def test_an_empty_portrait_is_a_valid_document() -> None:
    names = ["headlines", "cells", "findings", "answers", "figures", "warnings", "skipped", "reproduce"]
    empty = replace(example_portrait(), **dict.fromkeys(names, ()))
    validate(to_document(empty))
    assert from_record(Portrait, to_document(empty)) == empty


def _cell(document: dict[str, Any]) -> dict[str, Any]:
    cell: dict[str, Any] = document["cells"][0]
    return cell


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an unknown key": (lambda document: document.update(extra=1), "extra"),
    "a missing key": (lambda document: document.pop("warnings"), "warnings"),
    "a newer schema": (lambda document: document.update(schema=2), "schema"),
    "an answer without a grade": (lambda document: document["answers"][0].pop("grade"), "grade"),
    "an answer that compares with nothing": (
        lambda document: document["answers"][0].update(others=[]),
        "answers[0].others",
    ),
    "an answer on a measure that is not there": (
        lambda document: document["answers"][0].update(measure="nowhere"),
        "answers[0]",
    ),
    "a warning without remedy": (lambda document: document["warnings"][0].update(remedy=""), "warnings[0].remedy"),
    "half an interval": (lambda document: _cell(document).update(low=None), "cells[0]"),
    "no runs": (lambda document: _cell(document).update(runs=0, values=[]), "cells[0]"),
    "a median that is text": (lambda document: _cell(document).update(median="fast"), "cells[0].median"),
    "an unknown verdict": (lambda document: document["findings"][0].update(verdict="maybe"), "findings[0].verdict"),
    "an unknown that does not say what it needs": (
        lambda document: document["findings"][1].update(needs=""),
        "findings[1].needs",
    ),
    "evidence that is not there": (
        lambda document: document["findings"][0].update(evidence=["nowhere"]),
        "findings[0].evidence",
    ),
    "a headline that is not there": (
        lambda document: document["headlines"][0].update(cell="nowhere"),
        "headlines[0].cell",
    ),
    "a point that is not there": (
        lambda document: document["figures"][0]["series"][0]["points"][0].update(cell="nowhere"),
        "figures[0].series",
    ),
    "two cells with one id": (lambda document: document["cells"].append(copy.deepcopy(_cell(document))), ".id"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_document_with_a_fault_is_refused_and_the_place_is_named(fault: str) -> None:
    spoil, place = FAULTS[fault]
    document = example_document()
    spoil(document)
    with pytest.raises(BadInputError) as refused:
        validate(document)
    assert place in f"{refused.value.where} {refused.value.why}"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7e308])
def test_no_number_breaks_the_document(number: float) -> None:
    portrait = example_portrait()
    spoilt = replace(
        portrait,
        cells=(
            replace(portrait.cells[0], median=number, low=number, high=number, values=(number,), fresh=number),
            *portrait.cells[1:],
        ),
        answers=tuple(
            replace(answer, against=replace(answer.against, ratio=number, low=number, high=number))
            for answer in portrait.answers
        ),
    )
    document = json.loads(json.dumps(to_document(spoilt), allow_nan=False))
    validate(document)
    assert document["cells"][0]["median"] == (number if math.isfinite(number) else None)
