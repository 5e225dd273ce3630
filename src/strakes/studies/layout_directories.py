"""Directories of the workspace whose new files get a given layout: one for each layout, verified by reading it back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import MeasurementError, StrakesError
from strakes.model.cell import Cell
from strakes.targets import calls
from strakes.targets.description import Layout, layout_differences
from strakes.targets.marker import MARKER_NAME
from strakes.targets.target import Target


@dataclass(frozen=True)
class GivenLayout:
    """A requested layout and the layout that new files get.

    ``differences`` has a message for each value that differs. If the file system refused the layout, ``given`` is None
    and ``differences`` has the reason.
    """

    wanted: Layout
    given: Layout | None
    differences: tuple[str, ...]


class Places:
    """The directories of plans: the workspace, or for each layout a directory below it."""

    def __init__(self, workspace: Path, target: Target) -> None:
        self._workspace = workspace
        self._target = target
        self._made: dict[Layout, Path] = {}

    def make(self, cells: Iterable[Cell]) -> list[GivenLayout]:
        """Make a directory for each layout of the cells that has none; return requested and given layouts.

        A directory whose layout differs from the requested one is removed.
        """
        wanted = dict.fromkeys(cell.layout for cell in cells if cell.layout is not None)
        return [self._make(one) for one in wanted if one not in self._made]

    def of(self, layout: Layout | None) -> Path | None:
        """Return the directory for plans with that layout, or None if the file system did not give the layout."""
        return self._workspace if layout is None else self._made.get(layout)

    def _make(self, wanted: Layout) -> GivenLayout:
        place = self._workspace / f"layout{len(self._made)}-{_short(wanted)}"
        try:
            calls.call("mkdir", str(place))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise MeasurementError("a directory with a layout cannot be made", where=str(place), why=why) from error
        try:
            given = self._target.set_layout(place, wanted)
        except StrakesError as error:
            calls.call("rmdir", str(place))
            return GivenLayout(wanted, None, (error.why or error.what,))
        differences = layout_differences(wanted, given)
        if differences:
            calls.call("rmdir", str(place))
        else:
            # The engine works only in directories with a marker.
            calls.call("create", str(place / MARKER_NAME))
            self._made[wanted] = place
        return GivenLayout(wanted, given, differences)


def _short(wanted: Layout) -> str:
    if wanted.components:
        return f"{len(wanted.components)}-parts"
    return f"{wanted.stripe_count}x{wanted.stripe_size_bytes}"
