"""Test commands for the registry, and a process whose command waits for signals."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import click
import pytest

from strakes.base.interrupts import last_words
from strakes.cli import main


def register(monkeypatch: pytest.MonkeyPatch, body: Callable[[], object], name: str = "probe") -> None:
    monkeypatch.setattr(main, "COMMANDS", {name: "A probe."})
    monkeypatch.setattr(main, "_load", lambda _name: click.Command(name, callback=body))


def wait_for_signals() -> int:
    """Run a command that prints "ready", and "cleaning" when it is interrupted; return its exit status.

    Arguments: "slowly": it cleans for 60 s, and prints "hurried" at the end or at the next interrupt. "very": it then
    waits for another 60 s. "ignoring-hangup": it ignores SIGHUP from the start.
    """

    def body() -> None:
        # Each word is printed inside the try block that must catch the next signal.
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            try:
                print("cleaning", flush=True)
                time.sleep(60 if "slowly" in sys.argv else 0)
            finally:
                if "slowly" in sys.argv:
                    print("hurried", flush=True)
                time.sleep(60 if "very" in sys.argv else 0)

    last_words.append(lambda: "a=9 is changed")
    if "ignoring-hangup" in sys.argv:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch, body)
        return main.run(["probe"])


if __name__ == "__main__":
    sys.exit(wait_for_signals())
