"""At a limit of memory, files or processes, or without /proc, strakes exits at once and names the cause."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from strakes.base.processes import python_module
from strakes.cli import main

_FEW_BYTES = 300 << 20


@pytest.mark.parametrize(
    ("kind", "limit", "why"),
    [
        (resource.RLIMIT_AS, _FEW_BYTES, "it is limited to 300 MiB"),
        (resource.RLIMIT_NOFILE, 20, "the limit is 20"),
        (resource.RLIMIT_FSIZE, 1000 << 10, "it is limited to 1000 KiB"),
        (resource.RLIMIT_STACK, 128 << 10, "it is limited to 128 KiB"),
    ],
)
def test_limits_that_are_too_small_are_refused_at_once(tmp_path: Path, kind: int, limit: int, why: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "strakes", "survey", str(tmp_path), "--budget", "1s"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )
    assert done.returncode == 3
    assert why in done.stderr and "ulimit -" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_too_few_descriptors_for_the_process_itself_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **_named: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("sys.argv", ["strakes", "run", "missing.toml", "missing"])
    monkeypatch.setattr("strakes.cli.apart.run_apart", fail)
    assert main.main() == 3
    assert "Too many open files" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("a.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_reached_limit_is_not_reported_as_a_bug(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr(main, "_invoke", fail)
    assert main.run(["runs"]) == 3
    assert "a resource limit of this machine or of this user is reached" in capsys.readouterr().err


def test_more_ranks_than_one_process_can_have_are_refused_before_any_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    phase = '[[phase]]\nkind = "stream"\nname = "fill"\noperation = "write"\nblock_bytes = "4KiB"\ncount = 1\n'
    plan.write_text(f"ranks = 65536\n{phase}")
    assert main.run(["run", str(plan), str(tmp_path), "--quiet"]) != 0
    assert "65536 ranks; at most 4096 can be threads of one process" in capsys.readouterr().err


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
