"""Commands that end in every way a command can, and how to put them into the registry."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import click
import pytest

from strakes.cli import main


def register(monkeypatch: pytest.MonkeyPatch, body: Callable[[], object], name: str = "probe") -> None:
    """``strakes probe`` calls ``body``."""
    monkeypatch.setattr(main, "COMMANDS", {name: "A probe."})
    monkeypatch.setattr(main, "_load", lambda _name: click.Command(name, callback=body))


def wait_for_signals() -> int:
    """Print "ready", then "cleaning" once it is interrupted, then "hurried" when that is interrupted too."""

    def body() -> None:
        # What is said is said inside the try that the next signal is to meet.
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

    if "ignoring-hangup" in sys.argv:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch, body)
        return main.run(["probe"])


if __name__ == "__main__":
    sys.exit(wait_for_signals())
