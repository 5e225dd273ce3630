"""Messages about a missing launcher name a command that gets it."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.runs import mpi_family
from strakes.runs.mpi import find_mpiexec


def test_the_message_names_a_command_of_this_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda *_words, **_options: None)
    with pytest.raises(EnvironmentLacksError) as caught:
        find_mpiexec()
    command = re.search(r"run (\S+) .*'mpich>=5' && rm -f (\S+) && (\S+) doctor", caught.value.remedy)
    assert command is not None and os.access(command[1], os.X_OK) and os.access(command[3], os.X_OK)
    assert Path(command[2]) == Path(sys.prefix) / "strakes.stamp" and "dev setup" not in caught.value.remedy


def test_the_message_of_a_wheel_names_the_source_and_not_another_installation(tmp_path: Path) -> None:
    installed = Path(shutil.copy(mpi_family.__file__, tmp_path))
    told = str(runpy.run_path(str(installed))["GET_MPI"])
    assert "from its source instead of a wheel" in told and "docs/guide/mpi.md" in told and "pip" not in told
