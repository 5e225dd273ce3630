"""Extreme numbers in the record of a run break neither the report nor its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from report.document import validate
from runs.test_older_runs import RUNS, unpack
from strakes.base.errors import BadInputError, StrakesError
from strakes.base.finite import finite
from strakes.cli.main import run as strakes
from strakes.report.html import render_html
from strakes.report.summary import render_summary
from strakes.runs.run import Run
from strakes.tuning.portraits import build_portrait

EXTREME = (math.inf, -math.inf, math.nan, -0.0, 1e300, 1e-300)
Place = tuple[str | int, ...]


def numbers(value: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(item, (*place, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


def fields_of(rows: list[Any]) -> dict[Place, tuple[int, Place]]:
    """Return the first row with each numeric field, and the path of the number in it.

    Paths that differ only in list indices are the same field.
    """
    found: dict[Place, tuple[int, Place]] = {}
    for index, row in enumerate(rows):
        for place in numbers(row):
            found.setdefault(tuple("each" if isinstance(key, int) else key for key in place), (index, place))
    return found


def report_on(run: Run) -> str:
    try:
        portrait = build_portrait(run)
        document = finite(asdict(portrait))
        validate(json.loads(json.dumps(document, allow_nan=False)))
        render_html(portrait)
        render_summary(portrait, run.path)
    except StrakesError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("shift", [0, *(pytest.param(shift, marks=pytest.mark.long) for shift in range(1, 6))])
@pytest.mark.parametrize("name", ["visits.jsonl", "environment.json", "events.jsonl", "run.json", "cells.jsonl"])
def test_an_extreme_number_in_any_field_is_reported_or_named_as_damage(name: str, shift: int, tmp_path: Path) -> None:
    run = unpack(next(path for path in RUNS if path.name.startswith("open-close")), tmp_path)
    text = (run / name).read_text()
    rows = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else [json.loads(text)]
    for position, (index, place) in enumerate(fields_of(rows).values(), start=shift):
        changed = deepcopy(rows)
        holder = changed[index]
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = number = EXTREME[position % len(EXTREME)]
        (run / name).write_text("".join(json.dumps(row) + "\n" for row in changed))
        damage = report_on(Run(run))
        assert not damage or str(run) in damage, (place, number, damage)


def test_a_report_that_cannot_be_written_is_not_named_and_the_summary_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_portrait: object) -> str:
        raise BadInputError("a figure cannot be drawn")

    monkeypatch.setattr("strakes.report.html.render_html", fail)
    page = str(tmp_path / "report.html")
    assert strakes(["run", "--budget", "1s", "-q", "--html", page, "mdtest", "-n", "9", "-d", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "op/s" in said.out and page not in said.out
    assert "a figure cannot be drawn" in said.err
