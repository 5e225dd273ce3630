"""Published values and our own side by side, and in what the scales differ. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strakes.base.language import gettext
from strakes.model.literature_sources import Source
from strakes.model.portrait import CellEstimate, Figure, Portrait

# A value that a source gives for more places than these is one value.
_FEW = 2


@dataclass(frozen=True)
class Beside:
    """One published value: where it stands in a figure, and every own value at the same place. Values in ``unit``."""

    figure: str
    at: str
    label: str
    published: float
    unit: str
    own: tuple[tuple[str, CellEstimate], ...]


def beside(portrait: Portrait, source: str) -> tuple[Beside, ...]:
    """All published values that are drawn as points, with our own where the figure has them at the same place."""
    cells = {cell.id: cell for cell in portrait.cells}
    values: list[Beside] = []
    for figure in portrait.figures:
        for reference in figure.references:
            if reference.source != source:
                continue
            if len(reference.points) > _FEW and len({y for _, y in reference.points}) == 1:
                value = reference.points[0][1]
                values.append(
                    Beside(
                        figure.title,
                        gettext("throughout"),
                        reference.label,
                        value,
                        figure.y_unit,
                        _largest(figure, cells),
                    )
                )
                continue
            values += [
                Beside(figure.title, _place(x), reference.label, y, figure.y_unit, _own(figure, x, cells))
                for x, y in reference.points
            ]
    return tuple(values)


def statements(portrait: Portrait, source: str) -> tuple[str, ...]:
    """Return what the source says in words, each once."""
    texts = [
        reference.text for figure in portrait.figures for reference in figure.references if reference.source == source
    ]
    return tuple(dict.fromkeys(texts))


def scale(source: Source, portraits: Sequence[Portrait]) -> tuple[tuple[str, str, str], ...]:
    """Return what, theirs and ours for everything that the source told of its scale."""
    target: Mapping[str, Any] = portraits[0].target
    every = [cell.settings for portrait in portraits for cell in portrait.cells]

    def most(*names: str) -> int:
        """Return the largest product of these settings in one cell; 0 where no cell has them."""
        products = (
            math.prod(int(settings[name]) for name in names) for settings in every if {*names} <= settings.keys()
        )
        return max(products, default=0)

    ranks, files, targets = most("ranks"), most("files"), most("metadata_targets")
    data, client_bytes = most("data_bytes"), most("requests", "transfer_bytes")
    processors = target.get("cpus")

    def up_to(count: int, form: str) -> str:
        amount = f"{count / 2**20:{form}} MiB"
        return gettext("up to {amount}", amount=amount) if count else gettext("as much as fits the time")

    ours = {
        "file system": f"A: {_file_system(target)}; B: {_file_system(target['against'])}"
        if "against" in target
        else _file_system(target),
        "nodes": gettext("1, of {processors} processors", processors=processors)
        if processors
        else gettext("1, of unknown number of processors"),
        "processes": gettext("up to {ranks} ranks of one node", ranks=ranks),
        "clients": portraits[0].scope.partition(";")[0],
        "metadata targets": gettext("1 to {targets}", targets=targets) if targets else gettext("none are told apart"),
        "files": gettext("up to {amount}", amount=f"{files:,}") if files else gettext("as many as fit the time"),
        "data per process": up_to(data, ",.0f"),
        "data per client": up_to(client_bytes, ",.4g"),
    }
    unknown = gettext("not known")
    return tuple((gettext(what), gettext(theirs), ours.get(what, unknown)) for what, theirs in source.scale.items())


def _own(figure: Figure, x: float | str, cells: Mapping[str, CellEstimate]) -> tuple[tuple[str, CellEstimate], ...]:
    return tuple(
        (series.name, cells[point.cell])
        for series in figure.series
        for point in series.points
        if point.x == x and point.cell in cells
    )


def _file_system(target: Mapping[str, Any]) -> str:
    file_system = target.get("file_system", gettext("unknown"))
    return gettext("{file_system} at {directory}", file_system=file_system, directory=target.get("path", ""))


def _largest(figure: Figure, cells: Mapping[str, CellEstimate]) -> tuple[tuple[str, CellEstimate], ...]:
    """Return the largest value of each series and its place, to compare with one value for all places."""
    values = []
    for series in figure.series:
        points = [point for point in series.points if point.cell in cells]
        if points:
            most = max(points, key=lambda point: cells[point.cell].median)
            name = gettext("{line}, at most ({place})", line=series.name, place=_place(most.x))
            values.append((name, cells[most.cell]))
    return tuple(values)


def _place(x: float | str) -> str:
    if isinstance(x, str):
        return x
    # From a million on the general form would write powers of ten.
    return f"{x:,.0f}" if x >= 1e6 else f"{x:,.6g}"
