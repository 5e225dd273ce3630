"""Files of a plan, and the reasons for their lines, which the run-book repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One setting, and the risk that it averts."""

    text: str
    why: str = ""


@dataclass(frozen=True)
class PlannedFile:
    """One file. ``goes_to``: its path on each node. ``lines``: lines that the run-book explains."""

    path: str
    text: str
    goes_to: str = ""
    mode: int = 0o644
    lines: tuple[Line, ...] = ()

    @property
    def executable(self) -> bool:
        """Return whether the file is a program."""
        return bool(self.mode & 0o111)


def block(head: str, body: Iterable[Line | str], indent: int = 2) -> str:
    """Write a section in braces, every explained line with its reason as a comment."""
    made = [f"{head} {{"]
    for one in body:
        texts = (
            [f"# {one.why}", one.text]
            if isinstance(one, Line) and one.why
            else [one.text if isinstance(one, Line) else one]
        )
        made += [f"{' ' * indent}{line}" for text in texts for line in text.splitlines()]
    return "\n".join([*made, "}"])
