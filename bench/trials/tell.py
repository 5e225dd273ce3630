"""What was measured, as tables: how often like runs are called different, and how many runs find the slower ones."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import correlation, stdev

from bench.trials.measure import KINDS
from strakes.compare.runs import compare_runs, results_of
from strakes.compare.several import compare_several
from strakes.statistics.comparison import ONE_PAIR, RatioAt, between_runs, block_scores, judge, within_blocks
from strakes.statistics.contrast import Verdict, paired_ratio
from strakes.statistics.interval import median
from strakes.store import Run

CONFIDENCE, MARGIN = 0.9, 0.05
SETS = (5, 7, 10, 15, 20, 30)
FOUND = 0.8
_CALLED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True)
class Rounds:
    """The runs of every round: as they are stored, and their values, one for each block.

    Rounds without a slowed run have values for it all the same: those of the second run, less the share.
    """

    runs: Mapping[str, Sequence[Run]]
    values: Mapping[str, Sequence[Sequence[float]]]
    slower: float

    @classmethod
    def of(cls, rounds: Sequence[Mapping[str, Run]], slower: float) -> Rounds:
        runs = {kind: [round_[kind] for round_ in rounds] for kind in KINDS if kind in rounds[0]}
        values = {kind: [_scores(run) for run in runs_of_kind] for kind, runs_of_kind in runs.items()}
        computed = {"slowed": [[(1 - slower) * value for value in values_of_run] for values_of_run in values["again"]]}
        return cls(runs, {**computed, **values}, slower)

    @property
    def really_slowed(self) -> bool:
        return "slowed" in self.runs

    def medians(self, kind: str) -> list[float]:
        return [median(values) for values in self.values[kind]]


def _scores(run: Run) -> list[float]:
    """Return all cells as one, as ``compare`` takes them."""
    results = results_of(run, run.cells)
    measured = [
        results.get(cell.measure_id(measure.phase))
        for cell in run.cells
        for measure in cell.measures
        if not measure.is_side
    ]
    return list(block_scores([(cell.by_block(), cell.lower_is_better) for cell in measured]).values())


def tables(rounds: Rounds, tries: int, about: str) -> str:
    """Return all of it in Markdown."""
    errors = f"Nominal error {1 - CONFIDENCE:.0%}, margin {MARGIN:.0%}, all cells together"
    end = f"{errors}; {tries:,} tries where runs were drawn."
    head = f"{about} {_rounds_in_words(rounds)} {end}"
    return "\n\n".join(
        [head, _alike(rounds, tries), _different(rounds, tries), _needed(rounds, tries), *_client(rounds)]
    )


def _rounds_in_words(rounds: Rounds) -> str:
    count = len(rounds.runs["a"])
    if not rounds.really_slowed:
        return (
            f"{count} pairs of independent runs of the plan, one after the other. What a plan that is "
            f"{rounds.slower:.0%} slower would "
            f"have given is computed: the second run's rates less {rounds.slower:.0%}."
        )
    real = paired_ratio(dict(enumerate(rounds.medians("slowed"))), dict(enumerate(rounds.medians("a"))), CONFIDENCE)
    slowed = f"The slowed runs reached {real.median:.3f} of the others"
    if real.interval is not None:
        slowed += f" ({real.interval.low:.3f}–{real.interval.high:.3f} with {CONFIDENCE:.0%})"
    return (
        f"{count} rounds of three independent runs in random order: the plan, the plan again, and the plan with a "
        "delay after every "
        f"operation that was to cost {rounds.slower:.0%}. {slowed}."
    )


def _alike(rounds: Rounds, tries: int) -> str:
    runs = rounds.runs
    verdicts = [
        compare_runs(a, again, margin=MARGIN, confidence=CONFIDENCE).overall.verdict
        for a, again in zip(runs["a"], runs["again"], strict=True)
    ]
    every = list(itertools.combinations([*rounds.values["a"], *rounds.values["again"]], 2))
    random.Random(1).shuffle(every)
    # Only from the margin on, as compare says it of runs that were not made in turn.
    any_two = _verdicts((between_runs(a, b) for a, b in every[:tries]), least=ONE_PAIR)
    rows = [
        ["the two of each round, as `strakes compare A B` says", f"{len(verdicts)}", _told(verdicts)],
        ["any two of these runs, however far apart", f"{len(any_two):,}", _told(any_two)],
    ]
    for number in SETS:
        drawn = _verdicts(_sets(rounds, ("a", "again"), number, tries))
        rows.append([f"{number} runs of each in turn, drawn", f"{len(drawn):,}", _told(drawn)])
    return _table(["runs of the same plan", "comparisons", "SAME", "INCONCLUSIVE", "FASTER or SLOWER: wrong"], rows)


def _different(rounds: Rounds, tries: int) -> str:
    rows = []
    if rounds.really_slowed:
        pairs = zip(rounds.runs["a"], rounds.runs["slowed"], strict=True)
        verdicts = [_compared(a, slowed) for a, slowed in pairs]
        rows.append(["the two of each round, as `strakes compare A B` says", f"{len(verdicts)}", *_shares(verdicts)])
    for number in SETS:
        drawn = _verdicts(_sets(rounds, ("a", "slowed"), number, tries))
        rows.append([f"{number} runs of each in turn, drawn", f"{len(drawn):,}", *_shares(drawn)])
    return _table(["the plan against the slowed one", "comparisons", "SLOWER: found", "FASTER: wrong"], rows)


def _needed(rounds: Rounds, tries: int) -> str:
    """As it went, round after round; and by drawing."""
    text = ""
    if rounds.really_slowed:
        a, slowed = rounds.runs["a"], rounds.runs["slowed"]
        first = next(
            (
                number
                for number in range(SETS[0], len(a) + 1)
                if _compared_sets(a[:number], slowed[:number]) is Verdict.SLOWER
            ),
            None,
        )
        sufficient = first or "more than all"
        text = (
            f"As it went, `strakes compare A1,A2,… B1,B2,…` found the slowed plan from {sufficient} runs of each on. "
        )
    enough = next(
        (n for n in SETS if _share(_verdicts(_sets(rounds, ("a", "slowed"), n, tries)), (Verdict.SLOWER,)) >= FOUND),
        None,
    )
    drawn = f"{enough} runs of each" if enough else f"more than {SETS[-1]} runs of each"
    return f"{text}To find it in {FOUND:.0%} of the tries, it takes {drawn}."


def _client(rounds: Rounds) -> list[str]:
    """Return whether the client's own speed tells of that of its runs."""
    like = [
        (rate, run)
        for kind in ("a", "again")
        for rate, run in zip(rounds.medians(kind), rounds.runs[kind], strict=True)
    ]
    logs = [
        (math.log(rate), -math.log(median(seconds)))
        for rate, run in like
        if (seconds := [visit.client_s for visit in run.visits if visit.client_s is not None])
    ]
    if len(logs) < len(like):
        return []
    rates, clients = ([pair[side] for pair in logs] for side in (0, 1))
    scatter = (
        f"Like runs scattered by {stdev(rates):.1%} (standard deviation), the client by itself by {stdev(clients):.1%}"
    )
    return [f"{scatter}; the correlation of the two is {correlation(rates, clients):.2f}."]


def _compared(a: Run, b: Run) -> Verdict:
    return compare_runs(a, b, margin=MARGIN, confidence=CONFIDENCE, factors=("delay_ns",)).overall.verdict


def _compared_sets(a: Sequence[Run], b: Sequence[Run]) -> Verdict:
    return compare_several(a, b, margin=MARGIN, confidence=CONFIDENCE, factors=("delay_ns",)).overall.verdict


def _sets(rounds: Rounds, kinds: tuple[str, str], number: int, tries: int) -> Iterable[RatioAt]:
    """Draw rounds with replacement; of like runs it is drawn, too, which is called which."""
    generator = random.Random(number)
    first, second = (rounds.medians(kind) for kind in kinds)
    for _ in range(tries):
        a, b = {}, {}
        for place in range(number):
            which = generator.randrange(len(first))
            pair = (first[which], second[which])
            a[place], b[place] = pair if "slowed" in kinds or generator.random() < 0.5 else pair[::-1]
        yield within_blocks(a, b)


def _verdicts(ratios: Iterable[RatioAt], *, least: float = 0.0) -> list[Verdict]:
    return [judge([ratio], CONFIDENCE, MARGIN, least=least)[0].verdict for ratio in ratios]


def _told(verdicts: Sequence[Verdict]) -> str:
    return " | ".join(
        _percent(_share(verdicts, which), len(verdicts))
        for which in ((Verdict.SAME,), (Verdict.INCONCLUSIVE,), _CALLED)
    )


def _shares(verdicts: Sequence[Verdict]) -> list[str]:
    return [_percent(_share(verdicts, (which,)), len(verdicts)) for which in (Verdict.SLOWER, Verdict.FASTER)]


def _share(verdicts: Sequence[Verdict], which: Sequence[Verdict]) -> float:
    return sum(verdict in which for verdict in verdicts) / len(verdicts)


def _percent(share: float, of: int) -> str:
    """With its standard error where it is a single sample of comparisons."""
    return f"{share:.1%}" + (f" ±{math.sqrt(max(share, 0.5 / of) * (1 - share) / of):.1%}" if of < 1000 else "")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
