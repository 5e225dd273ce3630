"""Asking many things of which some may not be answered: what is not is kept as a note, and asking goes on."""

from __future__ import annotations

from typing import TypeVar

from strakes.errors import StrakesError
from strakes.targets.command import Command, Runner

T = TypeVar("T")


class Answers:
    """``notes`` says what was not answered, and why."""

    def __init__(self, run: Runner) -> None:
        self.run = run
        self.notes: list[str] = []

    def get(self, command: Command[T], otherwise: T) -> T:
        try:
            return command.ask(self.run)
        except StrakesError as error:
            self.note(error)
            return otherwise

    def note(self, error: StrakesError) -> None:
        if said(error) not in self.notes:
            self.notes.append(said(error))


def said(error: StrakesError) -> str:
    """An error as a note: what, where and why."""
    return "; ".join(part for part in (error.what, error.where, error.why) if part)
