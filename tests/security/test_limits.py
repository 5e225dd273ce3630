"""At a limit of memory, files or processes, or without /proc, strakes exits at once and names the cause."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, wait_for
from mounts import fill_up, tmpfs_mounted
from strakes.base.files import replace_kept
from strakes.base.processes import descendants_of, process_start, python_module
from strakes.cli import main

_FEW_BYTES = 300 << 20


@pytest.mark.parametrize(
    ("kind", "limit", "why"),
    [
        (resource.RLIMIT_AS, _FEW_BYTES, "it is limited to 300 MiB"),
        (resource.RLIMIT_NOFILE, 20, "the limit is 20"),
        (resource.RLIMIT_FSIZE, 1000 << 10, "it is limited to 1000 KiB"),
        (resource.RLIMIT_STACK, 800 << 10, "it is limited to 800 KiB"),
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


def test_a_limit_of_open_files_that_is_lowered_in_mid_run_is_named_and_no_process_stays(tmp_path: Path) -> None:
    (tmp_path / "measured").mkdir()
    plan = ROOT / "examples" / "checkpoint.toml"
    words = python_module("strakes", "run", str(plan), str(tmp_path / "measured"), "-q", "--budget", "30s")
    environment = {**os.environ, "STRAKES_STORE": str(tmp_path / "store")}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as strakes:
        wait_for(lambda: len(descendants_of(strakes.pid)) >= 2 and list(tmp_path.glob("measured/*/v*")), 60)
        family = {process: process_start(process) for process in (strakes.pid, *descendants_of(strakes.pid))}
        for process in family:
            resource.prlimit(process, resource.RLIMIT_NOFILE, (3, 3))
        _, said = strakes.communicate(timeout=120)
    assert strakes.returncode in (1, 3) and "open files" in said and "Traceback" not in said
    wait_for(lambda: not any(start and process_start(process) == start for process, start in family.items()), 60)


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


def test_a_full_directory_for_temporary_files_is_named_and_gets_no_empty_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with tmpfs_mounted("64k") as small:
        fill_up(small / "others")
        monkeypatch.setattr("tempfile.tempdir", str(small))
        for work, says in (
            (lambda _: replace_kept(small / "x", bytes(9)), "a file cannot be written"),
            (int, "[Errno 28]"),
        ):
            monkeypatch.setattr(main, "_invoke", work)
            assert main.run(["runs"])
            assert says in capsys.readouterr().err and os.listdir(small) == ["others"]


def test_more_ranks_than_one_process_can_have_are_refused_before_any_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    phase = '[[phase]]\nkind = "stream"\nname = "fill"\noperation = "write"\nblock_bytes = "4KiB"\ncount = 1\n'
    plan.write_text(f"ranks = 65536\n{phase}")
    assert main.run(["run", str(plan), str(tmp_path), "--quiet"]) != 0
    assert "65536 ranks cannot be used with --launcher local" in capsys.readouterr().err


_SCRIPT = 'umount --lazy /proc && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="unmounting needs root")
@pytest.mark.parametrize("words", ["survey --budget 1s", "target", "clean", "knobs list", "checkout"])
def test_without_proc_a_command_says_so_and_touches_nothing(tmp_path: Path, words: str) -> None:
    measured = tmp_path / "measured"
    measured.mkdir()
    command = [*python_module("strakes"), *words.split(), str(measured)]
    if words == "checkout":
        command = [str(ROOT / "strakes"), "clean", str(measured)]
    environment = {**os.environ, "STRAKES_STORE": str(tmp_path / "store"), "STRAKES_RUN": str(tmp_path / "run")}
    unshare = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _SCRIPT, "sh"]
    done = subprocess.run([*unshare, *command], env=environment, capture_output=True, text=True, timeout=120)
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr
    if done.returncode != 0:
        assert done.returncode == 3 and "mount -t proc proc /proc" in done.stderr
    assert list(measured.iterdir()) == []
