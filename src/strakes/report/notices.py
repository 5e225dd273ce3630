"""Group warnings and unmeasured settings, so that each text appears once. The most important group comes first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from strakes.base.language import gettext, ngettext
from strakes.model.portrait import Portrait, RunWarning, SkippedCell
from strakes.model.setting_text import settings_text
from strakes.report.tables import shared_and_varying

# Codes of warnings that affect all values. Reports show them before the answers, and the first code before all else.
FIRST = (
    *("background-load", "other-measurement", "memory-file-system", "cache-below", "service-interrupted"),
    *("servers-not-well", "held-back", "counters-unread", "burst"),
)


@dataclass(frozen=True)
class Notice:
    """Warnings with the same code and remedy. ``said``: (text, affected results) pairs; () means the whole run."""

    code: str
    said: tuple[tuple[str, tuple[str, ...]], ...]
    remedy: str
    cells: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of the warnings. If their texts differ, only the first text, as an example."""
        text = self.said[0][0]
        return text if len(self.said) == 1 else gettext("For example: {text}", text=text)

    @property
    def advice(self) -> str:
        """The text of the warnings, followed by the remedy."""
        return gettext("{text} {remedy}", text=self.text, remedy=self.remedy)

    @property
    def extent(self) -> str:
        """The number of affected results as text, or "whole run"."""
        return ngettext("{count} cell", "{count} cells", len(self.cells)) if self.cells else gettext("whole run")


@dataclass(frozen=True)
class Omission:
    """Settings of one study that were not measured for the same reason."""

    study: str
    reason: str
    settings: tuple[str, ...]


def notices(portrait: Portrait) -> tuple[Notice, ...]:
    """Return the grouped warnings of a report. Warnings about the whole run, main results or answers come first."""
    shown = {headline.cell for headline in portrait.headlines} | {answer.measure for answer in portrait.answers}
    return tuple(sorted(_gathered(portrait.warnings), key=lambda one: bool(one.cells) and shown.isdisjoint(one.cells)))


def touching(warnings: Sequence[RunWarning], cells: Collection[str]) -> tuple[Notice, ...]:
    """Return the grouped warnings about any of the results ``cells``. Other affected results are not listed."""
    narrowed = [replace(one, cells=tuple(cell for cell in one.cells if cell in cells)) for one in warnings]
    return _gathered([warning for warning in narrowed if warning.cells])


def omissions(skipped: Iterable[SkippedCell]) -> tuple[Omission, ...]:
    """Return the unmeasured settings, grouped by study and reason, in order of first appearance."""
    groups: dict[tuple[str, str], list[SkippedCell]] = {}
    for cell in skipped:
        groups.setdefault((cell.study, gettext(cell.reason)), []).append(cell)
    gathered = []
    for (study, reason), members in groups.items():
        shared, varying = shared_and_varying([cell.settings for cell in members])
        own = [{key: cell.settings[key] for key in varying if key in cell.settings} for cell in members]
        texts = dict.fromkeys([settings_text(shared), *(settings_text(levels, " ") for levels in own)])
        gathered.append(Omission(study, reason, tuple(filter(None, texts))))
    return tuple(gathered)


def _gathered(warnings: Iterable[RunWarning]) -> tuple[Notice, ...]:
    groups: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    whole = set()
    for warning in warnings:
        key = warning.code, warning.remedy
        texts = groups.setdefault(key, {})
        texts[warning.text] = (*texts.get(warning.text, ()), *warning.cells)
        if not warning.cells:
            whole.add(key)
    notices = []
    for key, texts in groups.items():
        cells = () if key in whole else tuple(dict.fromkeys(cell for each in texts.values() for cell in each))
        notices.append(Notice(key[0], tuple(texts.items()), key[1], cells))
    return tuple(notices)
