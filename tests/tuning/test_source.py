"""Choice of the run behind advice: the one named, one published by the site, or the user's newest."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner, one_in
from strakes.api import OpenedRun
from strakes.base.errors import BadInputError
from strakes.cli.main import run as run_command
from strakes.runs.store import Store
from strakes.tuning.advise_source import published_places, run_to_advise_from

APP = ROOT / "examples" / "apps" / "restart-dump.toml"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("measured")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "STRAKES_STORE": str(base / "store")}
    for words in (
        ("study", "transfer-size", base, "--budget", "3s", "--quiet"),
        ("export", "-o", base / "portrait.json"),
    ):
        subprocess.run([sys.executable, "-m", "strakes", *words], env=environment, check=True, timeout=120)
    return base


@pytest.fixture
def published(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured / "store", os.environ["STRAKES_STORE"])
    return Path(shutil.copy(measured / "portrait.json", tmp_path))


def test_a_published_run_gives_the_same_advice_as_the_original(
    strakes: StrakesRunner, published: Path, tmp_path: Path
) -> None:
    own = strakes("advise", "--app", APP)
    compressed = tmp_path / "portrait.json.gz"
    compressed.write_bytes(gzip.compress(published.read_bytes()))
    elsewhere = {"STRAKES_STORE": str(tmp_path / "another user")}
    by_name = strakes("advise", "--app", APP, "--from", published, environment=elsewhere)
    by_variable = strakes("advise", "--app", APP, environment=elsewhere | {"STRAKES_PORTRAIT": str(compressed)})
    assert own.returncode == 0 and own.stdout == by_name.stdout == by_variable.stdout


def test_a_file_in_the_current_directory_does_not_take_the_place_of_a_run(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAKES_STORE", str(measured / "store"))
    monkeypatch.chdir(tmp_path)
    run = Store().open("latest")
    for name in ("latest", run.id):
        shutil.copy(measured / "portrait.json", name)
        assert run_to_advise_from(name, lambda _: True).path == Store().open(name).path == run.path


def test_a_user_without_measurements_gets_the_published_run_of_the_system(
    strakes: StrakesRunner, published: Path, tmp_path: Path
) -> None:
    place = tmp_path / "share" / "strakes" / "portrait.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(published.read_bytes())
    site = {"STRAKES_STORE": str(tmp_path / "another user"), "XDG_DATA_DIRS": str(tmp_path / "share")}
    assert strakes("advise", "--app", APP, environment=site).returncode == 0
    page = strakes("report", "guide", environment=site)
    assert page.returncode == 0 and page.stdout.startswith("# How to use ")
    assert page.stdout == strakes("report", "guide", "latest").stdout


def test_relative_data_directories_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_DIRS", "here:/there")
    expected = ["/there/strakes/portrait.json", "/there/strakes/portrait.json.gz"]
    assert [str(path) for path in published_places()] == expected


@pytest.mark.parametrize("content", [None, b"", b"\x1f\x8b broken", b"[1, 2]", b'{"schema": 1}', b"\xff"])
def test_a_file_that_is_not_a_published_run_is_refused_and_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "portrait.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        BadInputError, match=r"published run cannot be read|this is not a run exported by strakes"
    ) as caught:
        run_to_advise_from(str(path), lambda _run: True).manifest  # noqa: B018 - the property reads the file
    assert ("No such file" in str(caught.value)) == (content is None) and str(path) in caught.value.where


def test_the_newest_run_with_an_answer_is_used_and_a_run_without_answers_is_reported(
    strakes: StrakesRunner, published: Path, tmp_path: Path
) -> None:
    assert strakes("study", "open-close", tmp_path, "--budget", "2s", "--quiet").returncode == 0
    assert (
        run_to_advise_from(None, lambda run: run.manifest["name"] == "transfer-size").manifest["name"]
        == "transfer-size"
    )
    assert run_to_advise_from(None, lambda _run: False).manifest["name"] == "open-close"
    nothing = strakes("advise", "--app", APP, "--from", "latest")
    assert nothing.returncode == 0 and "answers no question about the application" in nothing.stdout


def test_the_guide_passes_over_a_newer_run_that_answers_nothing(
    strakes: StrakesRunner, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = OpenedRun("latest", None).id
    assert strakes("study", "open-close", tmp_path, "--budget", "2s", "--quiet").returncode == 0
    monkeypatch.setattr("strakes.tuning.portraits.answers_anything", lambda run: run.id == answering)
    written = [tmp_path / name for name in ("default.md", "named.md")]
    assert run_command(["report", "guide", "-o", str(written[0])]) == 0
    assert run_command(["report", "guide", answering, "-o", str(written[1])]) == 0
    assert written[0].read_text() == written[1].read_text()


@pytest.mark.parametrize(
    ("place", "value"),
    one_in(
        3,
        [
            (("cells", 0, "plan", "phases", 0, "block_bytes"), {}),
            (("manifest", "options"), {"relative_half_width": -0.0}),
            (("manifest", "options"), []),
            (("visits", 0, "samples", 0, "ranks"), [[]]),
            (("visits", 0, "samples"), [{}]),
            (("visits", 0, "samples", 0, "histograms"), {"write": {"buckets": [["x", 1]]}}),
        ],
    ),
    ids=lambda each: ".".join(map(str, each)) if isinstance(each, tuple) else "",
)
def test_a_foreign_run_with_values_of_wrong_types_is_refused_without_an_internal_error(
    strakes: StrakesRunner, published: Path, place: tuple[str | int, ...], value: object
) -> None:
    document = json.loads(published.read_text())
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    published.write_text(json.dumps(document))
    opened = OpenedRun(str(published), None)
    for look in (lambda: opened.portrait, lambda: opened.samples):
        with suppress(BadInputError):
            look()
    advised = strakes("advise", "--app", APP, "--from", published)
    assert advised.returncode in (0, 2) and "internal error" not in advised.stderr, advised.stderr
    assert advised.returncode == 0 or "not a run exported by strakes" in advised.stderr or "damaged" in advised.stderr


def test_a_foreign_run_that_the_report_cannot_evaluate_names_its_file(published: Path) -> None:
    document = json.loads(published.read_text())
    for cell in document["cells"]:
        for phase in cell["plan"]["phases"]:
            phase["transfer_bytes"] = {}
    published.write_text(json.dumps(document))
    with pytest.raises(BadInputError) as refused:
        _ = OpenedRun(str(published), None).portrait
    assert str(published) in refused.value.where
