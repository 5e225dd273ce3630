"""The seven statements of S5 as claims on ratios: what each compares, and within which ratios it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from strakes.findings.portrait import Finding, IntervalOf
from strakes.findings.results import Measured, Results
from strakes.statistics.contrast import bonferroni
from strakes.statistics.interval import smallest_runs
from strakes.studies.compose import better_ratio, describe, first, interval_of

# S5 repeated to 10 % relative error (5 % for whole reads of one file): settings closer than that count as the same.
SAME = (1 / 1.1, 1.1)
SAME_WHOLE = (1 / 1.05, 1.05)
LESS, MORE = (0.0, 1 / 1.1), (1.0, math.inf)
NO_LESS = (1 / 1.1, math.inf)

Verdict = Literal["holds", "does-not", "inconclusive"]


@dataclass(frozen=True)
class NamedPart:
    """``a`` over ``b`` is claimed to lie ``within``; ``what`` says in words what the ratio is."""

    what: str
    a: Measured | None
    b: Measured | None
    within: tuple[float, float]


@dataclass(frozen=True)
class NumberedStatement:
    """One statement; it holds when all its parts do, and does not when one of them does not."""

    number: int
    text: str
    parts: tuple[NamedPart, ...]

    @property
    def id(self) -> str:
        """Of its finding."""
        return f"access-patterns-s5-{self.number}"


def judge(statement: NumberedStatement, results: Results) -> Finding | None:
    """Return the statement as a finding; None where this run did not measure what it is about."""
    parts = [
        (part, part.a, part.b)
        for part in statement.parts
        if part.a is not None and part.b is not None and part.a.id != part.b.id
    ]
    if len(parts) != len(statement.parts):
        return None
    confidence = bonferroni(results.confidence, len(parts))
    judged = [_judge(part, a, b, confidence) for part, a, b in parts]
    verdicts = [verdict for verdict, _, _ in judged]
    verdict: Verdict = (
        "does-not" if "does-not" in verdicts else "inconclusive" if "inconclusive" in verdicts else "holds"
    )
    evidence = tuple(dict.fromkeys(cell.id for _, a, b in parts for cell in (a, b)))
    word = {"holds": "HOLDS", "does-not": "DOES NOT hold", "inconclusive": "INCONCLUSIVE"}[verdict]
    text = (
        f"S5's statement {statement.number}, {statement.text}: {word} here; {'; '.join(text for _, text, _ in judged)}."
    )
    deciding = next(
        (interval for part_verdict, _, interval in judged if part_verdict == verdict and interval is not None), None
    )
    needs = ""
    if verdict == "inconclusive":
        needs = (
            "narrower intervals: give a larger --budget"
            if deciding
            else f"at least {smallest_runs(confidence)} blocks that measure both cells"
        )
    return Finding(statement.id, "access-patterns", text, verdict, evidence, deciding, needs)


def _judge(part: NamedPart, a: Measured, b: Measured, confidence: float) -> tuple[Verdict, str, IntervalOf | None]:
    ratio = better_ratio(a, b, confidence)
    if ratio is None or ratio.interval is None:
        return "inconclusive", f"{part.what}: too few runs", None
    low, high = ratio.interval.low, ratio.interval.high
    interval = interval_of(ratio.interval, f"{part.what}: ratio of {describe(a)} to {describe(b)}")
    text = f"{part.what} {ratio.median:.2f} times [{low:.2f} - {high:.2f}]"
    if part.within[0] <= low and high <= part.within[1]:
        return "holds", text, interval
    if high < part.within[0] or low > part.within[1]:
        return "does-not", text, interval
    return "inconclusive", text, interval


def statements(results: Results) -> list[NumberedStatement]:
    """All seven, over the cells there are; their cells are None where they were not measured."""
    sizes, clients = _axis(results, "requests", "transfer_bytes"), _axis(results, "clients", "ranks")
    if not sizes:
        return []
    fine, coarse = sizes[0], sizes[-1]

    def by_size(pattern: str, size: float, operation: str = "read") -> Measured | None:
        return first(results.where(axis="requests", pattern=pattern, operation=operation, transfer_bytes=size))

    def by_clients(pattern: str, ranks: float, operation: str = "read") -> Measured | None:
        return first(results.where(axis="clients", pattern=pattern, operation=operation, ranks=ranks))

    most = clients[-1] if clients else 0.0
    fewer = clients[-2] if len(clients) > 1 else most
    best_of_few = max(
        (cell for number in clients[:-1] if (cell := by_clients("SFSA", number)) is not None),
        key=lambda figure: figure.estimate.median if figure.estimate else 0.0,
        default=None,
    )
    both = ("write", "read")
    stated = {
        "whole reads of one shared file do not depend on the block size": [
            NamedPart("largest to smallest block", by_size("SFWA", coarse), by_size("SFWA", fine), SAME_WHOLE)
        ],
        "with a file per client the number of requests does not matter at equal amounts of data": [
            NamedPart(
                f"few to many requests, {each}s", by_size("MFWA", coarse, each), by_size("MFWA", fine, each), SAME
            )
            for each in both
        ],
        "with a file per client the rate settles as clients are added, and does not fall": [
            NamedPart(
                f"{most:.0f} to {fewer:.0f} clients, {each}s",
                by_clients("MFWA", most, each),
                by_clients("MFWA", fewer, each),
                NO_LESS,
            )
            for each in both
        ],
        "strided access to a shared file is the slower the finer, contiguous segments are not": [
            NamedPart(
                "strided, finest to coarsest, reads",
                by_size("SFSA strided", fine),
                by_size("SFSA strided", coarse),
                LESS,
            ),
            NamedPart("contiguous, finest to coarsest, reads", by_size("SFSA", fine), by_size("SFSA", coarse), SAME),
        ],
        "contiguous segments of a shared file are read faster than a file per client (S5: by about 20 %)": [
            NamedPart("shared to own, reads", by_size("SFSA", coarse), by_size("MFWA", coarse), MORE)
        ],
        "contiguous segments are faster than strided ones with many clients, but lose as clients are added": [
            NamedPart("contiguous to strided, reads", by_clients("SFSA", most), by_clients("SFSA strided", most), MORE),
            NamedPart("most clients to the best of fewer", by_clients("SFSA", most), best_of_few, LESS),
        ],
        "reads are faster than writes (S5: by about 20 %)": [
            NamedPart(
                "reads to writes to fsync, file per client",
                by_size("MFWA", coarse),
                by_size("MFWA", coarse, "write"),
                MORE,
            )
        ],
    }
    return [NumberedStatement(number, text, tuple(parts)) for number, (text, parts) in enumerate(stated.items(), 1)]


def seven_findings(results: Results) -> list[Finding]:
    """Make a finding of each statement; those not measured are unknown, with what it takes."""
    findings = []
    for statement in statements(results):
        finding = judge(statement, results)
        if finding is None:
            text = f"S5's statement {statement.number}, {statement.text}: not measured in this run."
            evidence = tuple(
                dict.fromkeys(cell.id for part in statement.parts for cell in (part.a, part.b) if cell is not None)
            )
            needs = "strakes study access-patterns DIR with space and time for all its cells"
            finding = Finding(statement.id, "access-patterns", text, "unknown", evidence, needs=needs)
        findings.append(replace(finding, tone="neutral"))
    return findings


def _axis(results: Results, axis: str, factor: str) -> list[float]:
    return sorted({float(cell.settings[factor]) for cell in results.where(axis=axis) if factor in cell.settings})
