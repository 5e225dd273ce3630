"""Where MPI is missing, the message names a command that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strakes.errors import EnvironmentLacksError
from strakes.launch.mpi import find_mpiexec


def test_the_message_names_a_command_of_this_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda *_words, **_options: None)
    with pytest.raises(EnvironmentLacksError) as caught:
        find_mpiexec()
    command = re.search(r"run (\S+/dev) setup", caught.value.remedy)
    assert command is not None
    assert Path(command[1]).is_file()
    assert "setup)" in Path(command[1]).read_text()
