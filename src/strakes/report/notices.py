"""Warnings and skipped cells, grouped so that each appears once, the most important first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from strakes.base.language import gettext, ngettext
from strakes.model.portrait import Portrait, RunWarning, SkippedCell
from strakes.report.numbers import label_of, level_of
from strakes.report.tables import shared_and_varying


@dataclass(frozen=True)
class Notice:
    """All warnings with one code and remedy. ``said``: texts with their cells; no cells mean the whole run."""

    code: str
    said: tuple[tuple[str, tuple[str, ...]], ...]
    remedy: str
    cells: tuple[str, ...]

    @property
    def text(self) -> str:
        """The only text, or the first one as an example."""
        text = self.said[0][0]
        return text if len(self.said) == 1 else gettext("For example: {text}", text=text)

    @property
    def advice(self) -> str:
        """Return the text and the remedy."""
        return gettext("{text} {remedy}", text=self.text, remedy=self.remedy)

    @property
    def extent(self) -> str:
        """The affected part of the run."""
        if not self.cells:
            return gettext("whole run")
        return ngettext("{count} cell", "{count} cells", len(self.cells))


@dataclass(frozen=True)
class Omission:
    """Cells of one study that were not measured for one reason."""

    study: str
    reason: str
    settings: tuple[str, ...]


def notices(portrait: Portrait) -> tuple[Notice, ...]:
    """Return the notices in their order, but notices about the whole run or a displayed figure first."""
    shown = {headline.cell for headline in portrait.headlines}
    shown.update(answer.measure for answer in portrait.answers)
    return tuple(
        sorted(_gathered(portrait.warnings), key=lambda notice: bool(notice.cells) and shown.isdisjoint(notice.cells))
    )


def touching(warnings: Sequence[RunWarning], cells: Collection[str]) -> tuple[Notice, ...]:
    """Return the notices that affect these cells, each with these cells only."""
    narrowed = [replace(one, cells=tuple(cell for cell in one.cells if cell in cells)) for one in warnings]
    return _gathered([warning for warning in narrowed if warning.cells])


def omissions(skipped: Iterable[SkippedCell]) -> tuple[Omission, ...]:
    """Return the skipped cells by study and reason, in their order."""
    groups: dict[tuple[str, str], list[SkippedCell]] = {}
    for cell in skipped:
        groups.setdefault((cell.study, gettext(cell.reason)), []).append(cell)
    gathered = []
    for (study, reason), members in groups.items():
        shared, varying = shared_and_varying([cell.settings for cell in members])
        texts = [", ".join(f"{label_of(key)} {level_of(key, value)}" for key, value in shared.items())]
        for cell in members:
            levels = {key: cell.settings[key] for key in varying if key in cell.settings}
            texts.append(" ".join(f"{label_of(key)} {level_of(key, value)}" for key, value in levels.items()))
        gathered.append(Omission(study, reason, tuple(filter(None, dict.fromkeys(texts)))))
    return tuple(gathered)


def _gathered(warnings: Iterable[RunWarning]) -> tuple[Notice, ...]:
    groups: dict[tuple[str, str], list[RunWarning]] = {}
    for warning in warnings:
        groups.setdefault((warning.code, warning.remedy), []).append(warning)
    notices = []
    for (code, remedy), members in groups.items():
        whole = any(not warning.cells for warning in members)
        cells = () if whole else tuple(dict.fromkeys(cell for warning in members for cell in warning.cells))
        cells_of: dict[str, tuple[str, ...]] = {}
        for warning in members:
            cells_of[warning.text] = (*cells_of.get(warning.text, ()), *warning.cells)
        notices.append(Notice(code, tuple(cells_of.items()), remedy, cells))
    return tuple(notices)
