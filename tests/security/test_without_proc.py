"""Commands on a machine or in a container without /proc."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from strakes.base.processes import python_module

_SCRIPT = 'umount --lazy /proc && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="unmounting needs root")
@pytest.mark.parametrize("words", [["survey", "--budget", "1s"], ["target"], ["clean"], ["knobs", "list"]])
def test_without_proc_a_command_says_so_and_touches_nothing(tmp_path: Path, words: list[str]) -> None:
    measured = tmp_path / "measured"
    measured.mkdir()
    command = [*python_module("strakes"), *words, str(measured)]
    environment = {**os.environ, "STRAKES_STORE": str(tmp_path / "store"), "STRAKES_RUN": str(tmp_path / "run")}
    unshare = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _SCRIPT, "sh"]
    done = subprocess.run([*unshare, *command], env=environment, capture_output=True, text=True, timeout=120)
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr
    if done.returncode != 0:
        assert done.returncode == 3 and "mount -t proc proc /proc" in done.stderr
    assert list(measured.iterdir()) == []
