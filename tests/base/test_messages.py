"""Reports in the language in use, and documents for programs in English."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from report.example import example_portrait
from strakes.base.language import choose, current, english
from strakes.cli.main import run as strakes
from strakes.report.guide import render_guide
from strakes.report.html import render_html
from strakes.report.summary import render_summary


class Capitals(dict[str, str]):
    """A catalogue that has every message, in capitals outside its fields."""

    def get(self, message: str, default: object = None) -> str:
        pieces = message.split("{")
        fields = [piece.partition("}") for piece in pieces[1:]]
        return pieces[0].upper() + "".join(f"{{{name}}}{text.upper()}" for name, _, text in fields)


@pytest.fixture
def _capitals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The package exports a function with the name of this module.
    monkeypatch.setattr(import_module("strakes.base.language"), "catalogue", lambda language: Capitals())
    yield
    choose("en")


@pytest.mark.usefixtures("_capitals")
def test_every_output_looks_its_texts_up() -> None:
    portrait = example_portrait()
    assert '<html lang="en">' in render_html(portrait)
    choose("zh")
    page = render_html(portrait)
    assert '<html lang="zh-CN">' in page and '<h2 id="glance">THE ANSWER</h2>' in page
    assert "MEDIAN" in page and "TRANSFER" in page
    assert "HOW TO USE IT" in render_summary(portrait) and "WHAT TO EXPECT" in render_guide(portrait)


@pytest.mark.usefixtures("_capitals")
def test_documents_for_programs_and_stored_ones_are_english(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = ["--language", "zh", "survey", str(tmp_path), "--budget", "1s", "-q"]
    documents = []
    for arguments in (survey, ["report", "latest"]):
        assert strakes([*arguments, "--json", str(tmp_path / "findings.json")]) == 0
        assert "REPORT" in capsys.readouterr().out
        documents.append(json.loads((tmp_path / "findings.json").read_text()))
    assert current() == "zh" and strakes(["export", "latest"]) == 0
    documents.append(json.loads(capsys.readouterr().out)["findings"])
    with english():
        assert strakes(["export", "latest"]) == 0
    documents.append(json.loads(capsys.readouterr().out)["findings"])
    for part in ("scope", "headlines", "findings", "figures", "warnings"):
        assert all(document[part] == documents[-1][part] for document in documents)
