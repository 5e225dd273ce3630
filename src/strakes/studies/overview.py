"""overview: the questions of `strakes survey`. A few measurements with extreme settings answer each question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from strakes.base.language import gettext, ngettext
from strakes.base.units import KIB, MIB, format_bytes
from strakes.model.answers import Answer, Question
from strakes.model.cell import Cell
from strakes.model.phases import Access, MetadataOperation, MetadataPhase, Sharing
from strakes.model.portrait import Figure, Headline, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask, ask_level, lines, rates
from strakes.studies.study import BANDWIDTH, Cells, Context, Study, power_of_two_at_most
from strakes.targets.description import Layout

_SIZES = (4 * KIB, 64 * KIB, MIB, 8 * MIB)
_USUAL = MIB
# Numbers of parallel ranks that write or create files.
_MANY_WRITERS, _MANY_CREATORS = 8, 16
_OPERATIONS: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")
_TITLES = {
    "request-size": {"write": "request size, buffered writes", "read": "request size, buffered reads"},
    "direct": {"write": "buffered or O_DIRECT, writes", "read": "buffered or O_DIRECT, reads"},
    "processes": {"write": "processes in all, writes", "read": "processes in all, reads"},
    "files": {"write": "files, writes", "read": "files, reads"},
    "strides": {"write": "shared file, writes", "read": "shared file, reads"},
    "stripes": {"write": "stripe count, writes", "read": "stripe count, reads"},
    "directories": {
        "file-create": "directories, creating files",
        "file-stat": "directories, looking up files",
        "file-remove": "directories, removing files",
    },
}
_RATES = {
    "write": "{size} writes, fsync",
    "read": "{size} reads",
    "file-create": "create",
    "file-stat": "look up (stat)",
    "file-remove": "remove",
}
_DIRECT_RATES = {"write": "{size} O_DIRECT writes, fsync", "read": "{size} O_DIRECT reads"}
_PLACES = {
    "own": "own files",
    "segmented": "shared file",
    "strided": "shared file in strides",
    "unique": "own directories",
    "shared": "shared directory",
}


class Overview(Study):
    """Advice on how to read, write and create files, from about a dozen measurements."""

    name = "overview"
    title = "How to use it"
    question = "Which request size, how many processes, which files and directories are fastest here?"
    source = "strakes"
    in_survey = True
    measured_longer = (f"overview/{_USUAL}", "overview/own-directories")

    def cells(self, context: Context) -> Cells:
        return [*self._data(context), *self._names(context), *self._stripes(context)]

    def _data(self, context: Context) -> Iterator[Cell | SkippedCell]:
        total = _total_bytes(context)
        for size in _SIZES:
            yield self._transfer(context, f"{size}", total, size=size, priority=2 if size == 64 * KIB else 1)
        if context.direct_io:
            yield self._transfer(context, "direct", total, size=_SIZES[-1], direct=True)
        else:
            yield self.skipped(f"O_DIRECT is not available on {context.file_system}", io="direct")
        yield self._transfer(context, "shared", total, files="shared-file")
        yield self._transfer(context, "strided", total, files="shared-file", access="strided", priority=2)
        for ranks in (1, _MANY_WRITERS):
            if ranks != context.team:
                yield self._transfer(context, f"ranks-{ranks}", total, ranks=ranks, priority=2)

    def _transfer(
        self,
        context: Context,
        key: str,
        total: int,
        *,
        size: int = _USUAL,
        ranks: int | None = None,
        files: Sharing = "file-per-process",
        access: Access = "segmented",
        direct: bool = False,
        priority: int = 1,
        layout: Layout | None = None,
    ) -> Cell | SkippedCell:
        ranks = ranks or context.team
        each = total // ranks
        settings: dict[str, Setting] = {
            "transfer_bytes": size,
            "ranks": ranks,
            "files": "own" if files == "file-per-process" else access,
            "io": "direct" if direct else "buffered",
            **({"stripe_count": layout.stripe_count or 0} if layout else {}),
        }
        # One call per rank is enough: all trials move the same data and open as many files, so open() biases no ratio.
        if size > each or each % size:
            return self.skipped(context.too_little(size, ranks), **settings)
        if access == "strided":
            phases = context.write_and_read(size, size, files, access, each // size, direct=direct)
        else:
            shift = context.shift if ranks > 1 else 0
            phases = context.write_and_read(size, each, files, direct=direct, rank_shift=shift)
            if size < _USUAL and not context.bypasses_cache:
                # Write whole files for the reads, because small writes may end early, at the time limit.
                whole = replace(context.write_and_read(min(each, _USUAL), each, files)[0], name="make")
                phases = (phases[0], whole, *phases[1:])
        return self.cell(context, key, settings, phases, WRITE_AND_READ, priority=priority, layout=layout)

    def _names(self, context: Context) -> Iterator[Cell | SkippedCell]:
        items = context.items(context.team) * context.team
        crowd = min(_MANY_CREATORS, context.most_ranks or _MANY_CREATORS)
        cells: tuple[tuple[str, int, Literal["unique", "shared"], int], ...] = (
            ("own-directories", context.team, "unique", 1),
            ("shared-directory", context.team, "shared", 1),
            ("one-creator", 1, "unique", 2),
            ("many-creators", crowd, "unique", 2),
        )
        for key, ranks, directory, priority in cells:
            if context.max_items < 16 * ranks:
                yield self.too_few_files(context, ranks=ranks)
                continue
            each, stop = max(8, items // ranks), context.stonewall()
            phases = [MetadataPhase(name, name, directory, each, stop=stop) for name in _OPERATIONS]
            settings: dict[str, Setting] = {"ranks": ranks, "directory": directory}
            yield self.cell(context, key, settings, phases, rates(*_OPERATIONS), priority=priority)

    def _stripes(self, context: Context) -> Iterator[Cell | SkippedCell]:
        if context.striping is None or context.striping.data_targets < 2:
            return
        total = _total_bytes(context)
        for count in (1, context.striping.data_targets):
            layout = Layout(stripe_size_bytes=MIB, stripe_count=count)
            yield self._transfer(context, f"stripes-{count}", total, files="shared-file", layout=layout, priority=3)

    def questions(self, results: Results) -> Sequence[Question]:
        asked = [question for operation in ("write", "read") for question in self._on_data(results, operation)]
        return [*asked, *self._on_names(results)]

    def _on_data(self, results: Results, operation: str) -> list[Question]:
        sizes = along(results, operation, "transfer_bytes")
        by_ranks = along(results, operation, "ranks")
        own, shared, strided = (
            usual_cells(results, operation, files=files) for files in ("own", "segmented", "strided")
        )
        direct = usual_cells(results, operation, transfer_bytes=_SIZES[-1], io="direct")
        stripes = along(results, operation, "stripe_count", files="segmented")
        # Compare O_DIRECT with the fastest of the large buffered requests.
        large = [(size, cells) for size, cells in sizes if size >= _USUAL]
        best, buffered = max(large, key=lambda one: _median(one[1]), default=(_USUAL, []))
        largest = format_bytes(_SIZES[-1])
        of_io = [(gettext("{size} buffered", size=format_bytes(best)), buffered), (f"{largest} O_DIRECT", direct)]
        equal = gettext("{first} and {second} are equally fast", first=of_io[0][0], second=of_io[1][0])
        of_files = [(gettext("one per process"), own), (gettext("shared"), shared)]
        of_strides = [(gettext("contiguous"), shared), (gettext("strided"), strided)]
        asked = (
            ("request-size", [(format_bytes(level), cell) for level, cell in sizes], ""),
            ("direct", of_io, equal),
            ("processes", [(f"{level:.0f}", cell) for level, cell in by_ranks], ""),
            ("files", of_files, gettext("one shared file is as fast as one per process")),
            ("strides", of_strides, gettext("strided is as fast as contiguous")),
            ("stripes", [(f"{level:.0f}", cell) for level, cell in stripes], ""),
        )
        return [
            question
            for name, options, alike in asked
            for question in ask(
                self.name,
                f"{name}-{operation}",
                gettext(_TITLES[name][operation]),
                options,
                ordered=not alike,
                alike=alike,
            )
        ]

    def _on_names(self, results: Results) -> list[Question]:
        asked = []
        for operation, title in _TITLES["directories"].items():
            own, shared = (
                results.where(operation=operation, ranks=_usual_ranks(results), directory=directory)
                for directory in ("unique", "shared")
            )
            asked += ask(
                self.name,
                f"directories-{operation}",
                gettext(title),
                [(gettext("one per process"), own), (gettext("shared"), shared)],
                alike=gettext("one shared directory is as fast as one per process"),
            )
        creators = results.where(operation="file-create", directory="unique")
        return asked + ask_level(self.name, "creators", gettext("processes in all, file creation"), creators, "ranks")

    def figures(self, results: Results) -> Sequence[Figure]:
        drawn = (
            ("transfer_bytes", gettext("Request size"), gettext("request size"), "B"),
            ("ranks", gettext("Processes per node"), gettext("processes per node"), ""),
        )
        return [
            self.figure(
                lines(
                    factor,
                    (
                        (gettext(operation), [cells[0] for _, cells in along(results, operation, factor)])
                        for operation in ("write", "read")
                    ),
                ),
                (label, unit, "log"),
                BANDWIDTH,
                title=title,
            )
            for factor, title, label, unit in drawn
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        ranks = _usual_ranks(results)
        shown: list[Measured] = []
        for operation in _RATES:
            shown += usual_cells(results, operation)
            shown += usual_cells(results, operation, transfer_bytes=_SIZES[-1], io="direct")
            shown += results.where(operation=operation, ranks=ranks, directory="unique")
        return [_headline(cell, ranks) for cell in shown]


def with_advised(headlines: Sequence[Headline], results: Results, answers: Sequence[Answer]) -> list[Headline]:
    """Return the main results: rates with the usual settings, and rates with the recommended settings."""
    results = results.of_study(Overview.name)
    ranks = _usual_ranks(results)
    operations = {cell.id: cell.settings["operation"] for cell in results.measured}
    lines = list(headlines)
    for answer in answers:
        if answer.study != Overview.name or answer.grade not in ("sure", "likely"):
            continue
        cell = results.get(answer.measure)
        line = _headline(cell, ranks)
        same = [at for at, one in enumerate(lines) if operations.get(one.cell) == operations[cell.id]]
        if line in lines or not same:
            continue
        lines.insert(same[-1] + 1, line)
    return lines


def _headline(cell: Measured, usual_ranks: Setting) -> Headline:
    levels = cell.settings
    texts = _DIRECT_RATES if levels.get("io") == "direct" else _RATES
    size = format_bytes(float(levels.get("transfer_bytes", 0)))
    parts = [gettext(texts[str(levels["operation"])], size=size)]
    parts.append(gettext(_PLACES[str(levels.get("files") or levels["directory"])]))
    if "stripe_count" in levels:
        parts.append(gettext("stripe count {count}", count=levels["stripe_count"]))
    if (ranks := levels["ranks"]) != usual_ranks:
        parts.append(ngettext("{count} process", "{count} processes", int(ranks)))
    return Headline(gettext(", ").join(parts), cell.id)


def _total_bytes(context: Context) -> int:
    # Choose an amount that even slow phases move within their time limit, because all must move the same data.
    slowest = min(context.pilot.write_bytes_per_s, context.pilot.read_bytes_per_s)
    most = power_of_two_at_most(slowest * (context.stonewall().seconds or 0.0) / context.team)
    each = context.amount_bytes(context.team, min(most, _SIZES[-1]))
    return context.team * (each // _SIZES[-1] * _SIZES[-1] or power_of_two_at_most(each))


def _median(cells: Sequence[Measured]) -> float:
    return max((cell.estimate.median for cell in cells if cell.estimate), default=0.0)


def _usual_ranks(results: Results) -> Setting:
    return next((cell.settings["ranks"] for cell in results.measured), 0)


def usual_cells(results: Results, operation: str, **settings: Setting) -> list[Measured]:
    """Return the measurements with the given settings ("any": all values). Other settings have their usual values."""
    usual: dict[str, Setting] = {
        "transfer_bytes": _USUAL,
        "ranks": _usual_ranks(results),
        "files": "own",
        "io": "buffered",
    }
    wanted = {name: value for name, value in (usual | settings).items() if value != "any"}
    cells = results.where(operation=operation, **wanted)
    return [cell for cell in cells if ("stripe_count" in cell.settings) == ("stripe_count" in settings)]


def along(results: Results, operation: str, factor: str, **settings: Setting) -> list[tuple[float, list[Measured]]]:
    """Return (value, measurements) for each value of a setting, ascending. Other settings have their usual values."""
    cells = usual_cells(results, operation, **{**settings, factor: "any"})
    levels = {float(level): [cell] for cell in cells if not isinstance(level := cell.settings[factor], str)}
    return sorted(levels.items(), key=lambda item: item[0])
