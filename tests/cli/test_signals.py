"""An interrupted command cleans up and ends; a second Ctrl-C cuts the clean-up short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strakes.base.interrupts import interrupts_deferred
from strakes.cli.main import run
from strakes.cli.signals import orderly_signals
from strakes.runs.store import Store

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def waiting_command(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("commands.py")), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"},
    )
    with process:
        try:
            expect(process, "ready")
            yield process
        finally:
            process.kill()


def expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None and process.stdout.readline() == f"{word}\n"


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGHUP, ()), (signal.SIGTERM, ("ignoring-hangup",))],
)
def test_a_signal_ends_the_command_after_its_clean_up(number: signal.Signals, words: tuple[str, ...]) -> None:
    with waiting_command(*words) as process:
        if words:
            process.send_signal(signal.SIGHUP)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert out == "cleaning\n"
    assert err == "strakes: stopping and cleaning up; interrupt again to stop sooner\nstrakes: error: interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_only_ctrl_c_cuts_the_clean_up_short_as_batch_systems_repeat_signals(number: signal.Signals) -> None:
    with waiting_command("slowly") as process:
        process.send_signal(number)
        expect(process, "cleaning")
        for again in (number, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            process.send_signal(again)
        out, err = process.communicate(timeout=20)
    assert out == "hurried\n"
    assert err.count("stopping now") == 1 and "strakes clean DIR" in err
    assert err.endswith("strakes: error: interrupted\n") and process.returncode == 130


def test_a_third_signal_ends_the_command_at_once() -> None:
    with waiting_command("very", "slowly") as process:
        process.send_signal(signal.SIGTERM)
        expect(process, "cleaning")
        process.send_signal(signal.SIGINT)
        expect(process, "hurried")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1].endswith("  also: a=9 is changed\n") and process.returncode == 130


@pytest.mark.timeout(0)  # pytest-timeout uses the same signal
@pytest.mark.parametrize(("patience_s", "made"), [(10.0, ["made"]), (0.02, [])])
def test_a_deferred_interrupt_is_delivered_after_the_protected_block_or_a_time_limit(
    monkeypatch: pytest.MonkeyPatch, patience_s: float, made: list[str]
) -> None:
    monkeypatch.setattr("strakes.base.interrupts._PATIENCE_S", patience_s)
    remembered = []

    def make() -> None:
        with interrupts_deferred():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            remembered.append("made")
        remembered.append("not heard")

    with orderly_signals(), pytest.raises(KeyboardInterrupt):
        make()
    assert remembered == made and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_survey_interrupted_before_it_measured_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        stopped = KeyboardInterrupt()
        stopped.add_note("a=9 is changed")
        raise stopped

    monkeypatch.setattr("strakes.survey.runner.gather_facts", interrupted)
    assert run(["survey", str(tmp_path), "-q"]) == 130
    assert "complete: nothing is kept\n  also: a=9 is changed\n" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()) and not Store().runs()


def test_an_interrupt_while_modules_are_imported_ends_quietly() -> None:
    program = (
        "import os, signal, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'strakes.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from strakes.__main__ import main\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_interrupt_in_a_destructor_is_not_lost_and_prints_no_traceback() -> None:
    script = """
import os, signal, time
from strakes.cli.signals import orderly_signals
class Thing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
with orderly_signals():
    try:
        thing = Thing()
        del thing
        time.sleep(20)
    except KeyboardInterrupt:
        print('interrupted')
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == "interrupted\n" and "Traceback" not in done.stderr
    assert done.stderr.count("stopping and cleaning up") == 1
