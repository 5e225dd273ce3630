"""Asking many things of which some may not be answered: what is not is kept as a note, and asking goes on."""

from __future__ import annotations

from typing import TypeVar

from strakes.errors import StrakesError
from strakes.targets.command import Command, CommandTimeout, Runner
from strakes.targets.target import said

T = TypeVar("T")


class Answers:
    """``notes`` says what was not answered, and why."""

    def __init__(self, run: Runner) -> None:
        """Take how commands are run."""
        self.run = run
        self.notes: list[str] = []
        self._silent: set[str] = set()

    def get(self, command: Command[T], otherwise: T) -> T:
        """Return the answer, or ``otherwise`` and a note; a tool that did not answer in time is not asked again."""
        if command.argv[0] in self._silent:
            return otherwise
        try:
            return command.ask(self.run)
        except StrakesError as error:
            if isinstance(error, CommandTimeout):
                self._silent.add(command.argv[0])
            self.note(error)
            return otherwise

    def note(self, error: StrakesError) -> None:
        """Keep why something was not answered."""
        if said(error) not in self.notes:
            self.notes.append(said(error))
