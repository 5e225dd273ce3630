"""Before and after: one way an application may do its I/O against others, as a speed-up with its interval.

S1's two proofs share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.findings.cell import Cell
from strakes.findings.claims import Claim
from strakes.findings.portrait import Finding, SkippedCell
from strakes.findings.results import Measured, Results
from strakes.statistics.contrast import bonferroni
from strakes.statistics.interval import smallest_runs
from strakes.studies.compose import better_ratio, interval_of
from strakes.studies.study import Advice


def enough_runs(cells: Sequence[Cell | SkippedCell]) -> list[Cell | SkippedCell]:
    """Return the cells with as many runs as it takes to judge all of them against the first together."""
    others = sum(isinstance(cell, Cell) for cell in cells) - 1
    least = smallest_runs(bonferroni(0.9, max(1, others))) + 1
    return [replace(cell, least_runs=least) if isinstance(cell, Cell) else cell for cell in cells]


def speed_ups(
    study: str, before: Measured, others: Sequence[Measured], results: Results, published: str
) -> list[Finding]:
    """How many times as fast each other way is, all judged together.

    ``published``: what the source reached, in words.
    """
    confidence = bonferroni(results.confidence, max(1, len(others)))
    findings = []
    for after in others:
        identifier, evidence = f"{study}-{after.id.split('/', 1)[1].rpartition(':')[0]}", (after.id, before.id)
        what = f"{after.settings['way']} against {before.settings['way']}"
        ratio = better_ratio(after, before, confidence)
        if ratio is None or ratio.interval is None:
            text = f"{what}: the speed-up is unknown."
            needs = f"at least {smallest_runs(confidence)} blocks that measure both"
            findings.append(Finding(identifier, study, text, "inconclusive", evidence, needs=needs))
            continue
        low, high = ratio.interval.low, ratio.interval.high
        of = "speed-up, one of several judged together" if len(others) > 1 else "speed-up"
        interval = interval_of(ratio.interval, of)
        text = f"{what}: {ratio.median:.2f} times as fast here ({published})."
        if low <= 1 <= high:
            needs = "a narrower interval: a larger --budget"
            text = f"Not shown either way: {text}"
            findings.append(Finding(identifier, study, text, "inconclusive", evidence, interval, needs))
            continue
        claims = (Claim(after.id, before.id, low, high),)
        findings.append(Finding(identifier, study, text, "measured", evidence, interval, claims=claims))
    return findings


def best_advice(setting: str, before: Measured, others: Sequence[Measured], results: Results) -> list[Advice]:
    """Return the fastest other way, where it is shown to beat the usual one."""
    best: tuple[float, Measured] | None = None
    for after in others:
        ratio = better_ratio(after, before, bonferroni(results.confidence, max(1, len(others))))
        if (
            ratio is not None
            and ratio.interval is not None
            and ratio.interval.low > 1
            and (best is None or ratio.median > best[0])
        ):
            best = ratio.median, after
    if best is None:
        return []
    gain, after = best
    reason = f"{gain:.2f} times as fast as: {before.settings['way']}"
    return [Advice(setting, str(after.settings["way"]), reason, after.id, before.id, 1.0, (after.id, before.id))]
