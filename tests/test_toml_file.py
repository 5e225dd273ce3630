"""A TOML file given to the wrong command is identified, and the error names the right command."""

from __future__ import annotations

from pathlib import Path

import pytest

from strakes.cli.main import run as strakes

EXAMPLES = Path(__file__).parents[1] / "examples"
PLAN, NEEDS, APP, PAIR = "checkpoint.toml", "needs-s3.toml", "apps/startup-load.toml", "tianhe2.toml"


@pytest.mark.parametrize(
    ("command", "file", "told"),
    [
        ("run {file} {dir}", NEEDS, "strakes accept"),
        ("run {file} {dir}", APP, "strakes advise --app"),
        ("run {file} {dir}", PAIR, "strakes failover plan"),
        ("advise --app {file}", PLAN, "strakes run"),
        ("advise --app {file}", NEEDS, "strakes accept"),
        ("accept {file} {dir}", PLAN, "strakes run"),
        ("accept {file} {dir}", PAIR, "strakes failover plan"),
        ("failover plan {file} -o {dir}/out", PLAN, "strakes run"),
        ("failover plan {file} -o {dir}/out", APP, "strakes advise --app"),
    ],
)
def test_a_file_of_another_kind_names_the_command_that_takes_it(
    command: str, file: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert strakes(command.format(file=EXAMPLES / file, dir=tmp_path).split()) == 2
    error = capsys.readouterr().err
    assert "this file is" in error and told in error
    assert list(tmp_path.iterdir()) == []
