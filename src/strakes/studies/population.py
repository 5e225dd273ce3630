"""population: creation rate of small files while the number of existing files grows. Source: StorNext (2011)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from strakes.base.language import gettext
from strakes.base.units import format_value
from strakes.model.answers import Question
from strakes.model.cell import Measure, Metric, Place
from strakes.model.portrait import Figure, Finding
from strakes.model.results import Measured, Results
from strakes.stats.level_shifts import SHORTEST, level_shifts
from strakes.studies.compose import ask, lines
from strakes.studies.small_files import AFTER_PER_HOUR, HIGH_BYTES, HOUR_S, SUBDIRECTORIES, pool_phase
from strakes.studies.study import Cells, Context, Study, Verdict

# The directory grows in this number of steps, and the first step is compared with the last. The default number of files
# and the run time are proportional to the number of steps.
_STEPS = 4
# Number of rounds in each step. With double the number, rounds would be too short to contain a typical stall of XFS.
_ROUNDS = 8
KEPT = "population"
# Published result: with 40 million files, the rate had fallen to less than half.
_THEIR_BEND, _THEIR_SHARE = 4e7, 0.5
_SLOWER = 0.8  # A rate below this share of an earlier rate counts as slower. Runs differ by 14 % (docs/statistics.md).
_ENDS = (
    "Rate of creation, stalls included: {first} files/s over the first quarter of {files} files, {last} files/s over "
    "the last quarter. No sudden change was found; the rate of StorNext fell at 40 million files."
)
_WAITING = (
    "Waiting for devices (iowait of this node): {first} at the beginning, {last} with {files} files. StorNext's "
    "metadata server: 24 % before tuning, 16 % after."
)
_MEMORY = (
    "Memory of the metadata servers: {first} at the beginning, {last} with {files} files. StorNext: from 2 to 11 GB, "
    "then 16 GB and full."
)


class Population(Study):
    """Creation rate in a pool of files that grows in 4 steps of 8 rounds each. Files are removed only at the end."""

    name = "population"
    title = "A growing population of files"
    question = "How fast are small files created as their number grows, and where does the rate change?"
    source = "S3"
    visits_in_sequence = _ROUNDS

    def cells(self, context: Context) -> Cells:
        ranks = context.team
        wanted = -(-context.files // (ranks * _ROUNDS)) if context.files else context.items(ranks) * _STEPS
        room = min(context.max_bytes // HIGH_BYTES, context.max_items - ranks * (SUBDIRECTORIES + 2)) // (
            ranks * _ROUNDS
        )
        files = min(wanted, room)
        if files < 1:
            yield self.too_few_files(context, ranks=ranks)
            return
        if context.files and files < wanted:
            reason = f"there is space for {files * ranks * _ROUNDS:,} files, not for {context.files:,}"
            yield self.skipped(reason, files=context.files)
        metrics: tuple[Metric, ...] = ("operations_per_s", "iowait", "servers_memory")
        measures = [Measure("fill", metric, {"operation": "create and write"}) for metric in metrics]
        steps = _steps(files)
        for step, each in enumerate(steps, start=1):
            settings = {"files": sum(steps[:step]) * ranks * _ROUNDS, "ranks": ranks}
            phases = (pool_phase("fill", "accumulate", files=each),)
            yield self.cell(context, f"{step:02}", settings, phases, measures, place=Place(kept=KEPT))

    def figures(self, results: Results) -> Sequence[Figure]:
        cells = results.where()
        if not cells:
            return []
        theirs = self.published(
            gettext(
                "StorNext (2011): {rate} million files an hour, falling by more than half after some 40 million files",
                rate=f"{AFTER_PER_HOUR / 1e6:g}",
            ),
            what=gettext("10 million and 40 million files"),
            points=((1e7, AFTER_PER_HOUR / HOUR_S), (_THEIR_BEND, _THEIR_SHARE * AFTER_PER_HOUR / HOUR_S)),
        )
        line = lines("files", [(gettext("created and written"), cells)])
        x, y = gettext("files in the population"), (gettext("files made a second"), "op/s")
        return [self.figure(line, (x, "", "log"), y, theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        cells = results.where()
        whole = [cell for cell in cells[1:] if len(cell.by_block()) >= SHORTEST]
        options = [
            (gettext("{files} files", files=f"{int(cell.settings['files']):,}"), [cell])
            for cell in (*cells[:1], *whole[-1:])
        ]
        return ask(self.name, "end-to-start", gettext("creating with"), options, advises=False)

    def findings(self, results: Results) -> Sequence[Finding]:
        cells = results.where()
        if not cells:
            return []
        more = [*self._bends(cells, results), *self._load(results), *self._clean_up(cells, results)]
        return [self._size(cells, results), *(more if len(cells) > 1 else ())]

    def _size(self, cells: Sequence[Measured], results: Results) -> Finding:
        made = _created(cells)
        planned = max(int(cell.settings["files"]) for cell in results.measured)
        if made >= planned:
            text = gettext("The population grew to its full size: {files} files were created.", files=f"{made:,}")
            return self.finding("size", text, "measured", results.ids(cells))
        message = "{created} of {planned} files were created; nothing is known about larger populations."
        text = gettext(message, created=f"{made:,}", planned=f"{planned:,}")
        needs = gettext("a larger --budget, or --resume if --keep was given")
        return self.finding("size", text, "inconclusive", results.ids(cells), needs=needs)

    def _bends(self, cells: Sequence[Measured], results: Results) -> list[Finding]:
        values = [value for cell in cells for value in cell.by_block().values()]
        totals = [0.0, *(float(cell.settings["files"]) for cell in cells)]
        steps = zip(cells, pairwise(totals), strict=True)
        where = [
            before + (after - before) * index / _ROUNDS
            for cell, (before, after) in steps
            for index in range(len(cell.by_block()))
        ]
        evidence = results.ids(cells)
        if len(values) < 2 * SHORTEST:
            text = gettext("There are too few rounds to find a change of the rate.")
            return [self.finding("bend", text, "inconclusive", evidence, needs=gettext("more rounds"))]
        changes = level_shifts(values)
        if not changes:
            ends = (values[:_ROUNDS], values[-_ROUNDS:])
            first, last = (len(some) / sum(1 / value for value in some) for some in ends)
            text = gettext(_ENDS, files=f"{totals[-1]:,.0f}", first=f"{first:,.0f}", last=f"{last:,.0f}")
            return [
                self.finding("bend", text, "measured", evidence, tone="bad" if last < _SLOWER * first else "neutral")
            ]
        return [
            self.finding(
                f"bend-{number}",
                gettext(
                    "From about {files} files on, {after} files are created per second instead of {before} (p = {p}).",
                    files=f"{where[change.index]:,.0f}",
                    after=f"{change.after:,.0f}",
                    before=f"{change.before:,.0f}",
                    p=f"{change.p_value:.2g}",
                ),
                "measured",
                evidence,
                tone="bad" if change.after < _SLOWER * change.before else "neutral",
            )
            for number, change in enumerate(changes, start=1)
        ]

    def _load(self, results: Results) -> list[Finding]:
        findings = []
        for metric, message in (("iowait", _WAITING), ("servers_memory", _MEMORY)):
            seen = results.beside(metric)
            if len(seen) > 1:
                ends = (seen[0], seen[-1])
                first, last = (format_value(cell.estimate.median, cell.unit) for cell in ends if cell.estimate)
                files = f"{_created(results.where()):,}"
                text = gettext(message, first=first, last=last, files=files)
                few = min(len(cell.by_block()) for cell in ends) < SHORTEST
                verdict: Verdict = "inconclusive" if few else "measured"
                needs = gettext("more rounds") if few else ""
                name = metric.replace("_", "-")
                findings.append(self.finding(name, text, verdict, results.ids(ends), needs=needs))
        return findings

    def _clean_up(self, cells: Sequence[Measured], results: Results) -> list[Finding]:
        done = results.facts.get("clean_up")
        evidence = results.ids(cells)
        if not done:
            text = gettext("The removal rate of the population is unknown.")
            needs = gettext("a complete run without --keep")
            return [self.finding("clean-up", text, "unknown", evidence, needs=needs)]
        made_s = sum(seen.sample.elapsed_s for cell in cells for seen in cell.observations)
        removed, made = done["files"] / done["elapsed_s"], done["files"] / made_s if made_s else 0.0
        ratio = removed / made if made else 0.0
        text = gettext(
            "All {files} files were removed in {time} s, {ratio} times as fast as they were created (measured once).",
            files=f"{done['files']:,}",
            time=f"{done['elapsed_s']:.3g}",
            ratio=f"{ratio:.2f}",
        )
        return [self.finding("clean-up", text, "measured", evidence, tone="good" if ratio > 1 else "bad")]


def _created(cells: Sequence[Measured]) -> int:
    return sum(seen.sample.operations for cell in cells for seen in cell.observations)


def _steps(files: int) -> list[int]:
    """Divide ``files`` into at most 4 nearly equal steps, the larger ones last, so that no round reuses file names.

    >>> _steps(102), _steps(3)
    ([25, 25, 26, 26], [1, 1, 1])
    """
    steps = min(_STEPS, files)
    return [files // steps + (step >= steps - files % steps) for step in range(steps)]
