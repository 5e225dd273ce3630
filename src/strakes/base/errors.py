"""Exceptions that say what failed, where, why, and what to do next.

The class of an exception determines the exit status of the command.
"""

from __future__ import annotations

from collections.abc import Iterable

from strakes.base.foreign_text import without_secrets

# Maximum length of an error's text in characters: 50 lines of 80 columns. Secrets are removed before the text is
# cut, from double the maximum, because a password in USER:PASSWORD@ is recognised only at the @.
_MOST_CHARACTERS = 4000
BROKEN_PIPE_STATUS = 141  # Exit status that shells report after SIGPIPE.


def nearest_word(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known word with the most similar spelling, or an empty text if none is similar.

    Words with another first letter are ignored, because a prefix such as "no" reverses the meaning.

    >>> nearest_word("metdata-ops", ["open-close", "metadata-ops"]), nearest_word("norun", ["run"])
    ('metadata-ops', '')
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, [one for one in known if one[:1] == word[:1]], n=1, cutoff=cutoff)), "")


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """Return a remedy for an unknown name: a similar known name, else ``otherwise``, else the list of all known names.

    >>> did_you_mean("transfre", ["files", "transfer"]), did_you_mean("size", ["files", "transfer"])
    ('Did you mean transfer?', 'One of: files, transfer.')
    """
    names = list(known)
    near = nearest_word(word, names, cutoff)
    return f"Did you mean {near}?" if near else otherwise or f"One of: {', '.join(names)}."


class StrakesError(Exception):
    """An error to show to the user. Passwords and keys are removed from the texts.

    ``where``: host, rank, path or server. ``why``: the cause, often a message of the system. ``remedy``: what to try
    next.

    >>> print(BadInputError("DIR is not a directory", where="/etc/passwd", remedy="Give a directory."))
    DIR is not a directory; where: /etc/passwd; next: Give a directory.
    """

    exit_status = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", remedy: str = "") -> None:
        self.what, self.where, self.why, self.remedy = what, where, why, remedy
        super().__init__(self.what)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, shortened(value) if isinstance(value, str) else value)

    def __str__(self) -> str:
        return "; ".join([self.what, *self._reasons()])

    def lines(self) -> list[str]:
        """Return the lines that the command prints for this error."""
        return [f"strakes: error: {self.what}", *(f"  {reason}" for reason in self._reasons())]

    def _reasons(self) -> list[str]:
        labelled = (("where", self.where), ("why", self.why), ("next", self.remedy))
        return [f"{label}: {text}" for label, text in labelled if text]


def shortened(text: str) -> str:
    """Return the first 4,000 characters of a text, without secrets."""
    shown = without_secrets(text[: 2 * _MOST_CHARACTERS])
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[: _MOST_CHARACTERS - 3]}..."


class MeasurementError(StrakesError):
    """The measured file system failed during the measurement."""


class ServersDeadError(MeasurementError):
    """The servers of the file system did not answer within the time limit."""


class BadInputError(StrakesError):
    """Wrong usage or input. It was rejected before strakes touched the measured file system."""

    exit_status = 2


class PerhapsDamagedError(BadInputError):
    """Stored data cannot be read, because they are damaged or strakes has a bug."""


class EnvironmentLacksError(StrakesError):
    """The machine lacks a program, package or file that strakes needs."""

    exit_status = 3


class StoppedForOthersError(StrakesError):
    """A measurement was ended because it disturbed other users (option --neighbour)."""

    exit_status = 130


class InterruptedByUser(StrakesError):
    """Ctrl-C or SIGTERM ended the command."""

    exit_status = 130
