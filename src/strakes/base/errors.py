"""Errors with what failed, where, why and the next step; each class has its exit status."""

from __future__ import annotations

from collections.abc import Iterable

# Longer lines of an error are cut, since inputs are quoted in them. At 80 columns this is a screen of 50 lines.
_MOST_CHARACTERS = 4000
BROKEN_PIPE_STATUS = 141  # as shells report for a program ended by SIGPIPE


def nearest_word(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known word with the most similar spelling, or "" if none is similar.

    >>> nearest_word("metdata-ops", ["open-close", "metadata-ops"])
    'metadata-ops'
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, n=1, cutoff=cutoff)), "")


class StrakesError(Exception):
    """An error a user can act on.

    ``what`` failed, ``where`` (host, rank, path, server), ``why`` in the system's own words, ``remedy`` to try next.

    >>> print(BadInputError("DIR is not a directory", where="/etc/passwd", remedy="Give a directory."))
    DIR is not a directory; where: /etc/passwd; next: Give a directory.
    """

    exit_status = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        return "; ".join([self.what, *self._reasons()])

    def lines(self) -> list[str]:
        """Return the lines to print."""
        shown = [f"strakes: error: {self.what}", *(f"  {reason}" for reason in self._reasons())]
        return [
            text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}... ({len(text)} characters)"
            for text in shown
        ]

    def _reasons(self) -> list[str]:
        labelled = (("where", self.where), ("why", self.why), ("next", self.remedy))
        return [f"{label}: {text}" for label, text in labelled if text]


class MeasurementError(StrakesError):
    """The measured thing failed during measurement."""

    exit_status = 1


class ServersDeadError(MeasurementError):
    """Servers did not answer for so long that the command was ended."""


class BadInputError(StrakesError):
    """Bad usage or input, refused before the target was touched."""

    exit_status = 2


class PerhapsDamagedError(BadInputError):
    """Stored data cannot be read: it was damaged, or strakes has a bug; see ``__cause__``."""


class EnvironmentLacksError(StrakesError):
    """The machine lacks something strakes needs."""

    exit_status = 3


class StoppedForOthersError(StrakesError):
    """A measurement gave way to other people's work (--neighbour): ended in order, as by Ctrl-C."""

    exit_status = 130


class InterruptedByUser(StrakesError):
    """Ctrl-C or SIGTERM: ended in order."""

    exit_status = 130
