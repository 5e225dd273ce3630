"""Plans may place ranks on processors: a placement is stored with the run, and an invalid one is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.cli.main import run as strakes
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.model.plan_read import plan_from_json, plan_from_toml
from strakes.runs.engine import find_engine
from strakes.runs.store import Store

PLAN = Plan(2, (MetadataPhase("make", "file-create", "unique", items=5),))
TEXT = """
ranks = 2
{more}
[[phase]]
kind = "metadata"
name = "make"
operation = "file-create"
directory = "unique"
items = 5
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    try:
        find_engine()
    except EnvironmentLacksError:
        pytest.skip("the engine is not built")
    (tmp_path / "measured").mkdir()
    file = tmp_path / "make.toml"
    file.write_text(TEXT.format(more=""))
    return file


def words(plan: Path, key: str) -> list[str]:
    plan.write_text(TEXT.format(more=key))
    return ["run", "--budget", "2s", "-q", str(plan), str(plan.parent / "measured")]


def test_plans_without_a_placement_keep_their_fingerprint() -> None:
    assert set(PLAN.to_json()["team"]) == {"ranks"}  # type: ignore[call-overload]
    placed = replace(PLAN, processors="0-3", buffer_pages="transparent")
    assert placed.fingerprint() != PLAN.fingerprint() and plan_from_json(placed.to_json()) == placed


def test_a_plan_file_gives_the_placement_next_to_the_ranks(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(TEXT.format(more='numa_nodes = "0,1"\nbuffer_pages = "huge"'))
    assert plan_from_toml(file, seed=1)[1] == replace(PLAN, seed=1, numa_nodes="0,1", buffer_pages="huge")
    file.write_text(TEXT.format(more='processors = "all"'))
    with pytest.raises(BadInputError, match="a list of numbers such as 0-3,8"):
        plan_from_toml(file, seed=1)


def test_a_plan_puts_ranks_on_processors_and_the_run_says_so(plan: Path) -> None:
    processor = str(min(os.sched_getaffinity(0)))
    assert strakes(words(plan, f'processors = "{processor}"')) == 0
    (cell,) = Store().open("latest").cells
    assert cell.plan.processors == processor


@pytest.mark.parametrize("key", ['processors = "16383"', 'numa_nodes = "1023"'])
def test_processors_that_this_machine_lacks_are_named(plan: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(words(plan, key)) == EnvironmentLacksError.exit_status
    said = capsys.readouterr().err
    assert key.split('"')[1] in said and "others may" in said
    assert not list((plan.parent / "measured").iterdir())


def test_an_invalid_list_of_processors_is_bad_input(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert strakes(words(plan, 'processors = "3-0"')) == BadInputError.exit_status
    assert "Write it as 0-3,8" in capsys.readouterr().err
