"""Publications whose measurements strakes repeats, and the comparison of their values with a run."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from strakes.base.language import gettext
from strakes.base.units import MIB
from strakes.model.portrait import CellEstimate, Portrait
from strakes.model.record import from_record

# Published replication of metadata to another server (Zeng et al., 2021).
BYTES_PER_FILE = 2.5 * 1024
CONFIGURED_MB_PER_S = 200.0
_SAID_MB_PER_S = 60.0  # Rate according to the text of the publication.
# Number of files -> measured seconds, from the table of the publication.
MEASURED_S: Mapping[int, float] = {10_000: 0.488, 100_000: 4.88, 1_000_000: 51.4, 10_000_000: 487.4}


@dataclass(frozen=True)
class Omitted:
    """A result of a publication that no study of strakes reproduces, with the reason."""

    what: str
    why: str


@dataclass(frozen=True)
class Source:
    """A publication. The comments in ``literature.toml`` explain the fields."""

    name: str
    paper: str
    studies: tuple[str, ...]
    scale: Mapping[str, str]
    grown: str = ""
    omitted: tuple[Omitted, ...] = ()
    compared: Omitted | None = None
    published: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def left_out(self, *, against: bool) -> tuple[Omitted, ...]:
        """Return the published results that a run does not reproduce. ``against``: the run has two file systems."""
        return self.omitted if against or self.compared is None else (*self.omitted, self.compared)


SOURCES: Mapping[str, Source] = {
    name: from_record(Source, {"name": name, **table})
    for name, table in tomllib.loads(files("strakes.model").joinpath("literature.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True)
class PublishedValue:
    """A published value. ``at``: x position in the figure. ``own``: values of a run at the same position."""

    figure: str
    at: str
    label: str
    published: float
    unit: str
    own: tuple[tuple[str, CellEstimate], ...]


def published_values(portrait: Portrait, source: str) -> tuple[PublishedValue, ...]:
    """Return the published values that figures show as points, each with the measured values at the same x."""
    cells = {cell.id: cell for cell in portrait.cells}
    values: list[PublishedValue] = []
    for figure in portrait.figures:
        for reference in figure.references:
            if reference.source != source:
                continue
            for x, y in reference.points:
                there = [(line.name, point.cell) for line in figure.series for point in line.points if point.x == x]
                own = tuple((name, cells[cell]) for name, cell in there if cell in cells)
                values.append(PublishedValue(figure.title, _place(x), reference.label, y, figure.y_unit, own))
    return tuple(values)


def statements(portrait: Portrait, source: str) -> tuple[str, ...]:
    """Return what the figures of a report say about ``source``, each text once."""
    references = [reference for figure in portrait.figures for reference in figure.references]
    return tuple(dict.fromkeys(reference.text for reference in references if reference.source == source))


def scale(source: Source, portraits: Sequence[Portrait]) -> tuple[tuple[str, str, str], ...]:
    """Return rows that compare the size of the published experiment and of this run: (quantity, published, own)."""
    target = portraits[0].target
    every = [cell.settings for portrait in portraits for cell in portrait.cells]

    def most(*names: str) -> int:
        values = [[one for name in names if isinstance(one := settings.get(name), int)] for settings in every]
        return max((math.prod(each) for each in values if len(each) == len(names)), default=0)

    def up_to(count: int, form: str) -> str:
        amount = f"{count / MIB:{form}} MiB"
        return gettext("up to {amount}", amount=amount) if count else gettext("as much as the time allows")

    files, targets, processors = most("files"), most("metadata_targets"), target.get("cpus")
    ours = {
        "file system": f"A: {_file_system(target)}; B: {_file_system(target['against'])}"
        if "against" in target
        else _file_system(target),
        "nodes": gettext("1 node with {processors} processors", processors=processors)
        if processors
        else gettext("1 node with an unknown number of processors"),
        "processes": gettext("up to {ranks} ranks on one node", ranks=most("ranks")),
        "clients": portraits[0].scope.partition(";")[0],
        "metadata targets": gettext("1 to {targets}", targets=targets) if targets else gettext("not distinguished"),
        "files": gettext("up to {amount}", amount=f"{files:,}") if files else gettext("as many as the time allows"),
        "data per process": up_to(most("data_bytes"), ",.0f"),
        "data per client": up_to(most("requests", "transfer_bytes"), ",.4g"),
    }
    unknown = gettext("not known")
    return tuple((gettext(what), gettext(theirs), ours.get(what, unknown)) for what, theirs in source.scale.items())


def _file_system(target: Mapping[str, Any]) -> str:
    file_system = target.get("file_system", gettext("unknown"))
    return gettext("{file_system} at {directory}", file_system=file_system, directory=target.get("path", ""))


def _place(x: float | str) -> str:
    if isinstance(x, str):
        return x
    # From a million on, format "g" would use an exponent.
    return f"{x:,.0f}" if x >= 1e6 else f"{x:,.6g}"


@dataclass(frozen=True)
class ReplicationRow:
    """A recomputed row of the replication table of Zeng et al. (2021). ``implied_mb_per_s``: size / published time."""

    files: int
    megabytes: float
    predicted_s: float
    published_s: float
    implied_mb_per_s: float


def replicated_megabytes(files: int) -> float:
    """Return the megabytes of metadata of ``files`` files, with the bytes per file in Zeng et al. (2021, S2)."""
    return files * BYTES_PER_FILE / MIB


def replication_table() -> tuple[ReplicationRow, ...]:
    """Return the table of metadata replication times of Zeng et al. (2021, S2), recomputed."""
    amounts = [(files, replicated_megabytes(files), published_s) for files, published_s in MEASURED_S.items()]
    return tuple(
        ReplicationRow(files, amount, amount / CONFIGURED_MB_PER_S, published_s, amount / published_s)
        for files, amount, published_s in amounts
    )


def replication_disagreement() -> str:
    """Return a sentence on the different replication rates in the text and the table of Zeng et al. (2021, S2)."""
    rates = [row.implied_mb_per_s for row in replication_table()]
    return gettext(
        "Zeng et al. (2021) state different rates of replication: about {said:.0f} MB/s in the text, and {low:.0f} to "
        "{high:.0f} MB/s in the table ({configured:.0f} MB/s configured).",
        said=_SAID_MB_PER_S,
        configured=CONFIGURED_MB_PER_S,
        low=min(rates),
        high=max(rates),
    )
