"""Run the command line in the process of the tests, because starting Python takes longer than most commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import StrakesRunner
from strakes.cli.main import run


@pytest.fixture
def strakes(capsys: pytest.CaptureFixture[str]) -> StrakesRunner:

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        capsys.readouterr()
        status = run(words)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, status, said.out, said.err)

    return call
