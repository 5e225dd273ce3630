"""The JSON document of the findings conforms to its schema and can be read back as the portrait."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from report.document import validate
from report.example import DOCUMENT, HOSTILE_PATH, example_portrait
from strakes.base.finite import finite
from strakes.model.portrait import Portrait
from strakes.model.record import from_record


def example_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(finite(asdict(example_portrait())), allow_nan=False))
    return document


def test_the_document_is_the_portrait_as_plain_values() -> None:
    assert example_document() == json.loads(json.dumps(asdict(example_portrait())))
    assert json.dumps(example_document(), indent=1) + "\n" == DOCUMENT.read_text(encoding="utf-8")


def test_the_document_conforms_to_the_schema_and_can_be_read_back() -> None:
    portrait = example_portrait()
    validate(example_document())
    again = from_record(Portrait, example_document())
    assert again == portrait and again.target["path"] == HOSTILE_PATH


def test_an_empty_portrait_is_a_valid_document() -> None:
    names = ["headlines", "cells", "findings", "answers", "figures", "warnings", "skipped", "reproduce"]
    nothing: dict[str, Any] = dict.fromkeys(names, ())
    empty = replace(example_portrait(), **nothing)
    validate(finite(asdict(empty)))
    assert from_record(Portrait, finite(asdict(empty))) == empty


Spoil = Callable[[dict[str, Any]], object]
FAULTS: dict[str, Spoil] = {
    "an unknown key": lambda document: document.update(extra=1),
    "a missing key": lambda document: document.pop("warnings"),
    "a newer schema": lambda document: document.update(schema=2),
    "an answer without a grade": lambda document: document["answers"][0].pop("grade"),
    "an answer that compares with nothing": lambda document: document["answers"][0].update(others=[]),
    "a warning without remedy": lambda document: document["warnings"][0].update(remedy=""),
    "half an interval": lambda document: document["cells"][0].update(low=None),
    "no runs": lambda document: document["cells"][0].update(runs=0, values=[]),
    "a median that is text": lambda document: document["cells"][0].update(median="fast"),
    "an unknown verdict": lambda document: document["findings"][0].update(verdict="maybe"),
    "an unknown that does not say what it needs": lambda document: document["findings"][1].update(needs=""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_schema_refuses_a_document_with_a_fault(fault: str) -> None:
    document = example_document()
    FAULTS[fault](document)
    with pytest.raises(AssertionError):
        validate(document)


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
    document = json.loads(json.dumps(finite(asdict(spoilt)), allow_nan=False))
    validate(document)
    assert document["cells"][0]["median"] == (number if math.isfinite(number) else None)
