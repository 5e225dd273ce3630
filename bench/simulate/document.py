"""The tables of docs/statistics.md, each between a pair of comments that name it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from bench.simulate.claims import CURVES, drift_claims, group_claims, pooled_drift_claims, saturation_claims
from bench.simulate.comparisons import CELLS, Design, told
from bench.simulate.contrasts import Pair, ratio_coverage, ratio_pairs, stopped_ratio_coverage, verdicts
from bench.simulate.dependent import called, changes_told
from bench.simulate.resemblance import resemblance
from bench.simulate.shapes import bimodal, coverage_shapes, heavy_tailed, log_normal, normal, slowed_down
from bench.simulate.stopping import Stop, coverage_under, ever_missed
from strakes.analysis.remedies import REMEDIES
from strakes.errors import BadInputError
from strakes.statistics.contrast import Verdict

STOPS: tuple[Stop, ...] = ("width", "runs", "time")
DESIGNS: tuple[Design, ...] = ("apart", "apart, shifted", "apart, wandering", "in turn")
MARGIN = 0.05
UNDERRATED = (0.5, 0.2, 0.05)
CORRELATIONS = (0.0, 0.5, 0.8, 0.9)


def coverage_table(tries: int) -> str:
    """Cells: coverage by distribution and by what stopped them, and that of the usual interval."""
    rows = []
    lowest = 1.0
    for shape in coverage_shapes():
        coverages = [coverage_under(shape, stop, tries, _seed(shape.name, stop)) for stop in STOPS]
        usual = coverage_under(shape, "width", tries, _seed(shape.name, "width"), usual=True)
        lowest = min(lowest, *(coverage.covered for coverage in coverages))
        runs = [f"{coverages[0].mean_runs:.1f}", f"{usual.mean_runs:.1f}"]
        rows.append([shape.name, *(_percent(coverage.covered) for coverage in (*coverages, usual)), *runs])
    heads = [
        "distribution of the runs",
        "stopped by width",
        "by others' number of runs",
        "by time spent",
        "usual interval, by width",
        "mean runs, ours",
        "usual",
    ]
    few = f"{100 * ever_missed(60, 0.9):.2f} %"
    exact = f"The exact chance that *any* of the intervals after 5 to 60 runs misses: {few}; after 5 to 500: "
    return "\n\n".join(
        [
            f"{tries:,} tries a figure, nominal 90 %, target ±10 %; standard error at 90 %: {_error(tries)}.",
            _table(heads, rows),
            f"Lowest of the first three columns: {_percent(lowest)}. {exact}{100 * ever_missed(500, 0.9):.2f} %.",
        ]
    )


def ratio_table(tries: int) -> str:
    """Ratios: coverage by the shapes of both settings and by design."""
    rows = []
    for pair in ratio_pairs():
        row = [
            ratio_coverage(pair, "paired", (runs, runs), tries, _seed(pair.name, "paired", runs))
            for runs in (5, 7, 12, 20)
        ]
        row.append(ratio_coverage(pair, "paired-drift", (8, 8), tries, _seed(pair.name, "drift", 8)))
        row.append(stopped_ratio_coverage(pair, tries, _seed(pair.name, "stopped")))
        row += [
            ratio_coverage(pair, "independent", runs, tries, _seed(pair.name, *runs))
            for runs in ((5, 5), (5, 12), (12, 12), (8, 30))
        ]
        rows.append([pair.name, *map(_percent, row)])
    blocks = ["5 blocks", "7", "12", "20", "8, under drift", "after both cells stopped themselves"]
    heads = ["a / b", *blocks, "independent, 5 and 5 runs", "5 and 12", "12 and 12", "8 and 30"]
    return f"{tries:,} tries a figure, nominal 90 %.\n\n{_table(heads, rows)}"


def verdict_table(tries: int) -> str:
    """Return what is said of two settings that are alike, and of one that is 10 % slower."""
    rows = []
    for shape in (normal(0.03), normal(0.1), slowed_down(0.1), bimodal(0.7, 0.6)):
        for design in ("paired", "independent"):
            row = [shape.name, design]
            for slower in (0.0, 0.1):
                for runs in (5, 8, 20):
                    shares = verdicts(
                        Pair(shape, shape), design, runs, slower, MARGIN, tries, _seed(shape.name, design, runs, slower)
                    )
                    called = shares[Verdict.SLOWER] + (shares[Verdict.FASTER] if slower == 0 else 0)
                    row.append(_percent(called))
            rows.append(row)
    alike, slower_by = (
        [f"alike: FASTER or SLOWER, {runs} runs" for runs in (5, 8, 20)],
        [f"10 % slower: SLOWER, {runs} runs" for runs in (5, 8, 20)],
    )
    table = _table(["runs of both", "design", *alike, *slower_by], rows)
    return f"{tries:,} tries a figure, nominal error 10 %, margin 5 %.\n\n{table}"


def comparison_table(tries: int) -> str:
    """Whole runs compared: alike, and the second a tenth slower."""
    rows = []
    for shape in (normal(0.03), normal(0.1), slowed_down(0.1)):
        for design in DESIGNS:
            alike = told(shape, design, 0.0, tries, _seed("told", shape.name, design))
            slower = told(shape, design, 0.1, tries, _seed("told", shape.name, design, "slower"))
            shares = (alike.any_cell_called, alike.overall_called, slower.overall_slower, slower.cells_slower)
            rows.append([shape.name, design, *map(_percent, shares), f"{slower.runs:.1f}"])
    heads = [
        "runs of both",
        "measured",
        "alike: any cell called",
        "alike: overall called",
        "10 % slower: overall found",
        "of the cells",
        "runs of a cell",
    ]
    nominal = "nominal error 10 % for all cells together and for the overall verdict, margin 5 %"
    return f"{tries:,} tries a figure, {CELLS} cells, {nominal}.\n\n{_table(heads, rows)}"


def saturation_table(tries: int) -> str:
    """Saturation points named falsely, and the smallest good one named."""
    rows = []
    worst = 0.0
    for shape in (normal(0.03), normal(0.1), slowed_down(0.1)):
        for curve in CURVES:
            row = [curve.name, shape.name]
            for blocks in (5, 8, 12, 20):
                claims = saturation_claims(curve, shape, blocks, tries, _seed(curve.name, shape.name, blocks))
                worst = max(worst, claims.false)
                row.append(f"{_percent(claims.false)} / {_percent(claims.smallest)} / {_percent(claims.named)}")
            rows.append(row)
    heads = ["true rates of the levels", "noise", *(f"{blocks} blocks" for blocks in (5, 8, 12, 20))]
    return (
        f"{tries:,} tries a figure: named although below 95 % of the best / the smallest good one named / any named. "
        f"Nominal error 10 %; the worst here is {_percent(worst)}.\n\n{_table(heads, rows)}"
    )


def drift_table(tries: int) -> str:
    """Drift called where there is none, and where the rate falls by 10 %."""
    rows = []
    few = max(1, tries // 5)
    for shape in (normal(0.05), slowed_down(0.1), bimodal(0.7, 0.6)):
        row = [shape.name]
        for change in (0.0, 0.1):
            row += [
                _percent(drift_claims(shape, runs, change, tries, _seed(shape.name, runs, change))) for runs in (8, 20)
            ]
            row += [
                _percent(pooled_drift_claims(shape, 20, blocks, change, few, _seed(shape.name, change, blocks)))
                for blocks in (5, 8)
            ]
        rows.append(row)
    designs = ("a cell of 8 runs", "of 20", "20 cells, 5 blocks", "8 blocks")
    heads = [
        "distribution of the runs",
        *(f"no drift: {text}" for text in designs),
        *(f"-10 %: {text}" for text in designs),
    ]
    return f"{tries:,} tries a figure ({few:,} for many cells), nominal error 5 %.\n\n{_table(heads, rows)}"


def group_table(tries: int) -> str:
    """Two groups claimed."""
    shapes = (
        normal(0.1),
        log_normal(1.0),
        heavy_tailed(0.2),
        slowed_down(0.4),
        bimodal(0.5, 0.8),
        bimodal(0.5, 0.6),
        bimodal(0.7, 0.6),
        bimodal(0.9, 0.6),
    )
    rows = [
        [shape.name, *(_percent(group_claims(shape, runs, tries, _seed(shape.name, runs))) for runs in (12, 20, 60))]
        for shape in shapes
    ]
    table = _table(["distribution of the runs", "12 runs", "20 runs", "60 runs"], rows)
    return f"{tries:,} tries a figure, nominal error 1 %.\n\n{table}"


def dependent_table(tries: int) -> str:
    """Return how often like runs are told apart where each value resembles the one before it."""
    rows = []
    few = max(1, tries // 4)
    for scatter in (0.1, 0.3):
        for name, pairs, designs in (
            ("`compare A B`", False, ((1, 12), (4, 12), (4, 40), (20, 12))),
            (
                "in pairs: `--against`, runs made in turn",
                True,
                ((1, 8), (1, 20), (4, 8), (6, 8), (4, 12), (4, 40), (20, 12)),
            ),
        ):
            for cells, runs in designs:
                shares = [
                    called(cells, runs, alike, scatter, tries, _seed(name, cells, runs, alike, scatter), pairs=pairs)
                    for alike in CORRELATIONS
                ]
                found = called(
                    cells, runs, 0.0, scatter, few, _seed(name, cells, runs, "found", scatter), pairs=pairs, apart=2.0
                ).of_cells
                of = f"{cells} cell{'s' if cells > 1 else ''} of {runs} runs"
                both = [f"{_percent(share.any_cell)} / {_percent(share.overall)}" for share in shares]
                rows.append([name, of, f"{100 * scatter:.0f} %", *both, _percent(found)])
    for runs in (10, 14, 30, 100):
        told_of = [changes_told(runs, alike, 0.1, few, _seed("history", runs, alike)) for alike in CORRELATIONS]
        rows.append(["`history`", f"{runs} runs", "10 %", *map(_percent, told_of), ""])
    heads = ["what", "of", "scatter", *(f"correlation {alike:g}" for alike in CORRELATIONS), "found"]
    nominal = (
        "any cell called / overall called, nominal error 10 % each; a change told by `history`, nominal 5 %; "
        f"found: of independent runs that differ by twice their scatter, so many cells ({few:,} tries)"
    )
    return f"{tries:,} tries a figure ({few:,} of `history`): {nominal}.\n\n{_table(heads, rows)}"


def resemblance_table(tries: int) -> str:
    """Return how wide ratios are whose blocks resemble each other, by how surely that is to be enough."""
    rows = []
    for runs in (12, 20, 30):
        for alike in CORRELATIONS:
            seed = _seed("resemblance", runs, alike)
            without = resemblance(runs, alike, None, tries, seed)
            rules = [resemblance(runs, alike, underrated, tries, seed) for underrated in UNDERRATED]
            told = [
                f"{_percent(one.missed)} / {_percent(one.missed_called)} / {one.times_as_wide:.1f}" for one in rules
            ]
            rows.append([f"{runs}", f"{alike:g}", _percent(rules[0].called), _percent(without.missed), *told])
    heads = [
        "blocks",
        "correlation",
        "called",
        "missed, if nothing counts",
        *(f"too small in {one:g}" for one in UNDERRATED),
    ]
    nominal = "missed / of the called missed / how many times as wide the called are"
    return f"{tries:,} tries a figure, confidence 99.8 %: {nominal}.\n\n{_table(heads, rows)}"


def warning_table(_: int) -> str:
    """Return the catalogue of warnings."""
    return _table(["code", "what to do"], [[f"`{code}`", remedy] for code, remedy in REMEDIES.items()])


TABLES: Mapping[str, tuple[Callable[[int], str], int]] = {
    "coverage": (coverage_table, 1),
    "ratios": (ratio_table, 1),
    "verdicts": (verdict_table, 1),
    "comparisons": (comparison_table, 10),
    "saturation": (saturation_table, 5),
    "drift": (drift_table, 2),
    "groups": (group_table, 2),
    "dependent": (dependent_table, 10),
    "resemblance": (resemblance_table, 10),
    "warnings": (warning_table, 1),
}


def filled(document: str, tries: int, log: Callable[[str], None], only: Collection[str] = ()) -> str:
    """Return the document with every table (or ``only`` some) made anew; slow simulations get a fraction of the tries.

    Raises BadInputError for a missing place.
    """
    for name, (table, fraction) in TABLES.items():
        if only and name not in only:
            continue
        log(name)
        document = placed(document, name, partial(table, max(1, tries // fraction)))
    return document


def placed(document: str, name: str, table: Callable[[], str]) -> str:
    """Return the document with that table made anew.

    Raises BadInputError for a missing place, before anything is made.
    """
    place = re.search(f"(<!-- generated: {name} -->\n).*?(<!-- end -->)", document, re.DOTALL)
    if not place:
        raise BadInputError(
            f"no place for the table {name!r}",
            remedy=f"Write <!-- generated: {name} --> and <!-- end --> on lines of their own.",
        )
    return f"{document[: place.end(1)]}{table()}\n{document[place.start(2) :]}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _error(tries: int) -> str:
    return f"±{100 * (0.9 * 0.1 / tries) ** 0.5:.1f} %"


def _seed(*of: object) -> int:
    """Return a seed of its own for every figure, the same on every machine."""
    return zlib.crc32(repr(of).encode())
