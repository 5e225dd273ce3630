"""The front end's schema and the engine accept and refuse the same plans."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.cli.main import run as strakes
from strakes.model.plan_read import validate_plan_document
from strakes.runs.engine import find_engine

PLANS = Path(__file__).parents[1] / "plans"
EXAMPLES = Path(__file__).parents[2] / "examples"
GOOD = sorted((PLANS / "good").glob("*.json"))
BAD = sorted((PLANS / "bad").glob("*.json"))
CONTRADICTORY = sorted((PLANS / "contradictory").glob("*.json"))


@pytest.fixture(scope="module")
def hello(engine: Path) -> Any:
    return json.loads(
        subprocess.run([engine], input="", capture_output=True, text=True, timeout=60).stdout.splitlines()[0]
    )


@pytest.fixture(scope="module")
def engine() -> Path:
    try:
        return find_engine()
    except EnvironmentLacksError:
        pytest.skip("the engine is not built")


def verdict(engine: Path, document: object, directory: Path) -> tuple[str, str]:
    (directory / ".strakes-marker").touch()
    message = {"type": "plan", "version": 1, "id": "p", "directory": str(directory), "plan": document, "limit_s": 60}
    answer = subprocess.run([engine], input=json.dumps(message) + "\n", capture_output=True, text=True, timeout=120)
    messages: list[dict[str, Any]] = [json.loads(line) for line in answer.stdout.splitlines()]
    done = next(one for one in messages if one["type"] == "done")
    keys = [one["where"].get("key", "") for one in messages if one["type"] == "error"]
    return done["status"], keys[0] if keys else ""


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_plan_is_valid_and_the_engine_accepts_it(path: Path, engine: Path, hello: Any, tmp_path: Path) -> None:
    validate_plan_document(read(path))
    lacking = {phase.get("backend", "posix") for phase in read(path)["phases"]} - set(hello["backends"])
    if lacking:
        pytest.skip(f"the engine is without {', '.join(lacking)}")
    # One plan has more ranks than can run as threads. Whether other plans end well depends on the machine.
    status, key = verdict(engine, read(path), tmp_path)
    assert status != "refused" or key == "team.ranks"


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_plan_is_refused_for_the_same_key(path: Path, engine: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        validate_plan_document(read(path))
    assert verdict(engine, read(path), tmp_path) == ("refused", caught.value.where)


@pytest.mark.parametrize("path", CONTRADICTORY, ids=lambda path: path.stem)
def test_a_contradictory_plan_is_valid_but_the_engine_refuses_it(path: Path, engine: Path, tmp_path: Path) -> None:
    validate_plan_document(read(path))
    assert verdict(engine, read(path), tmp_path)[0] == "refused"


def test_a_plan_that_contradicts_itself_is_bad_input_and_leaves_nothing(
    engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / "filebench-oltp.toml").read_text()
    (tmp_path / "plan.toml").write_text(text.replace('size_high_bytes = "10MiB"', "size_high_bytes = 0"))
    (tmp_path / "measured").mkdir()
    words = ["run", str(tmp_path / "plan.toml"), str(tmp_path / "measured"), "--budget", "5s", "-q"]
    assert strakes(words) == BadInputError.exit_status
    said = capsys.readouterr().err
    assert "less than size_low_bytes" in said and "contradicts itself" in said
    assert not list((tmp_path / "measured").iterdir())
