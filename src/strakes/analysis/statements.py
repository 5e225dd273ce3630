"""What a run states, and how sure all of it is together: findings that hold at once, advice that fresh runs confirm.

All functions here are pure.

Of the error that a run may make in all, two fifths go to its findings, two to its advice, and one to what it says of
changes of level; each share is divided equally among its statements (Bonferroni), so that the chance of any false one
is at most that error, however they depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.analysis.levels import LEVELS_SHARE
from strakes.findings.claims import Claim
from strakes.findings.portrait import Finding, IntervalOf, Recommendation
from strakes.findings.results import Results
from strakes.statistics.contrast import bonferroni
from strakes.statistics.interval import Estimate, median, smallest_runs
from strakes.studies.compose import better_ratio, describe, from_own_cache, ratio_logs
from strakes.studies.study import Advice, Contest, Study
from strakes.units import counted, format_seconds

# Of the error, for all findings as for all advice.
_SHARE = (1 - LEVELS_SHARE) / 2
# The first block only chooses what is tested on the others.
_CHOOSING_BLOCKS = 1
# So many blocks of a level tell what was better there.
_TELLING = 3
# Settings that are slow so much more often than the other one are unlike in that.
_UNLIKE = 0.05
_LEAST = 1e-9
# Of the error of a setting, what may confirm it wrongly; the rest may refute it wrongly.
_CONFIRMING = 0.8


def shared_out(confidence: float, statements: int) -> float:
    """Return the confidence of each of so many findings, or settings advised, of one run.

    >>> round(shared_out(0.9, 20), 4)
    0.998
    """
    return bonferroni(1 - (1 - confidence) * _SHARE, max(1, statements))


def blocks_to_decide(confidence: float, statements: int) -> int:
    """Return the fewest blocks with which so many findings can be decided at once.

    >>> blocks_to_decide(0.9, 1), blocks_to_decide(0.9, 28)
    (7, 12)
    """
    return smallest_runs(shared_out(confidence, statements)) + _CHOOSING_BLOCKS


@dataclass(frozen=True)
class Statements:
    """What the studies of a run state.

    ``settings``: how many were proposed; those that fresh runs confirm are advised.
    """

    findings: tuple[Finding, ...]
    recommendations: tuple[Recommendation, ...]
    settings: int

    def told_with(self, confidence: float) -> str:
        """In words: how sure all of it is. Findings of a single figure are no comparisons, and are not counted here."""
        decided = sum(1 for finding in self.findings if finding.claims)
        return (
            f"{counted(len(self.findings), 'finding')} (decided comparisons: {decided}) and "
            f"{counted(self.settings, 'proposed setting')} (confirmed: {len(self.recommendations)}): the decided "
            f"comparisons and confirmed settings are all true together with {100 * confidence:.0f} % confidence; "
            f"each figure's interval holds by itself with {100 * confidence:.0f} %"
        )


def state(
    studies: Sequence[Study],
    results: Results,
    changed: Mapping[str, str],
    moments: Mapping[str, Sequence[float]] | None = None,
    slow: Mapping[str, tuple[int, int]] | None = None,
) -> Statements:
    """Judge everything that the studies look at.

    ``changed`` says in which kind of work a measure changed its level during the run, ``moments`` when, ``slow`` how
    many of its runs were on the slow one of levels that take turns, of how many.
    """
    by_study = [(study, _of_file_system(study, results)) for study in studies]
    looked_at = sum(finding.verdict != "unknown" for study, own in by_study for finding in study.findings(own))
    confidence = shared_out(results.confidence, looked_at)
    findings = [
        _unless_changed(finding, changed)
        for study, own in by_study
        for finding in study.findings(replace(own, confidence=confidence))
    ]
    proposed = proposals(studies, results)
    recommendations: list[Recommendation] = []
    refutations: list[Claim] = []
    for (study, advice), judged in zip(proposed, _judged(proposed, results), strict=True):
        if isinstance(judged, Finding):
            refuted = judged.verdict == "does-not"
            refutations += judged.claims if refuted else ()
            findings.append(_since_then(judged, results, changed) if refuted else _unless_changed(judged, changed))
        elif (
            _across_levels(judged.claims, changed)
            or not _at_all_levels(judged.claims, results, moments or {})
            or _unlike_turns(judged.claims, slow or {})
        ):
            text = f"Whether {judged.setting} = {judged.value} is the best choice depends on when it was measured."
            identifier = f"{advice.chosen}-changed"
            findings.append(
                Finding(identifier, study.name, text, "inconclusive", judged.evidence, judged.interval, _STEADY)
            )
        else:
            recommendations.append(judged)
    findings = [unless_refuted(finding, refutations) for finding in findings]
    # First, since it says why there is nothing on reads.
    return Statements((*_cached(studies, results), *findings), tuple(recommendations), len(proposed))


# The end of the name of a finding that compares work after removing with work in a fresh directory.
_CHURNED = "-churned"
_STEADY = "figures that do not change during the run: see the warning not-stationary"


def _unless_changed(finding: Finding, changed: Mapping[str, str]) -> Finding:
    """Return a finding as one that depends, where it was true for a while only.

    What compares work that changed its level with work that did not, and a figure of work that changed.
    """
    if finding.verdict == "inconclusive":
        # What is not decided claims nothing, and is not counted as decided.
        return replace(finding, claims=())
    if finding.id.endswith(_CHURNED) and any(cell in changed for cell in finding.evidence):
        # Removed files may be what slowed all creating down, in fresh directories, too.
        text = "What removed files cost is not known: the speed of creating changed during the run."
        return replace(finding, statement=text, verdict="inconclusive", needs=_STEADY, tone="neutral", claims=())
    single = finding.verdict == "measured" and not finding.claims and any(cell in changed for cell in finding.evidence)
    if not single and not _across_levels(finding.claims, changed):
        return finding
    text = f"Depends on when it was measured: {finding.statement}"
    return replace(finding, statement=text, verdict="inconclusive", needs=_STEADY, tone="neutral", claims=())


def unless_refuted(finding: Finding, refutations: Sequence[Claim]) -> Finding:
    """Return a finding of the blocks as undecided where fresh runs of the same cells contradict it."""
    if not any(_contradict(claim, refuted) for claim in finding.claims for refuted in refutations):
        return finding
    text = f"In the blocks, but not in the fresh runs: {finding.statement}"
    return replace(finding, statement=text, verdict="inconclusive", needs=_STEADY, tone="neutral", claims=())


def _contradict(claim: Claim, other: Claim) -> bool:
    """Whether two claims on the same two measures cannot both be true."""
    if (claim.of, claim.to) == (other.to, other.of):
        low, high = (None if bound is None else 1 / bound for bound in (other.high, other.low))
        other = Claim(claim.of, claim.to, low, high)
    return (claim.of, claim.to) == (other.of, other.to) and (
        (claim.low is not None and other.high is not None and claim.low > other.high)
        or (claim.high is not None and other.low is not None and claim.high < other.low)
    )


def _since_then(refuted: Finding, results: Results, changed: Mapping[str, str]) -> Finding:
    """Return what fresh runs refute with their moment, and undecided, where the blocks showed something else."""
    (claim,) = refuted.claims
    blocks = better_ratio(results.get(claim.of), results.get(claim.to), results.confidence)
    unlike = (
        blocks is not None
        and blocks.interval is not None
        and claim.high is not None
        and blocks.interval.low > claim.high
    )
    if not unlike and not {claim.of, claim.to} & changed.keys():
        return refuted
    first_s = min(seen.at_s for cell in results.measured for seen in cell.observations)
    fresh_s = min(seen.at_s for seen in results.get(claim.of).observations if seen.purpose == "confirm") - first_s
    text = f"From {format_seconds(fresh_s)} after the first run on, and perhaps not before: {refuted.statement}"
    return replace(refuted, statement=text, verdict="inconclusive", needs=_STEADY, tone="neutral", claims=())


def _at_all_levels(claims: Sequence[Claim], results: Results, moments: Mapping[str, Sequence[float]]) -> bool:
    """Whether a setting was half as much better, at least, in the blocks of each level that its work had."""
    for claim in claims:
        of, to = results.get(claim.of), results.get(claim.to)
        ends = sorted(moments.get(claim.of, ()))
        logs: dict[int, list[float]] = {}
        times = {seen.block: seen.at_s for seen in of.observations if seen.purpose == "measure"}
        for at_s, better in zip(
            (times[block] for block in sorted(times.keys() & to.by_block().keys())), ratio_logs(of, to), strict=False
        ):
            logs.setdefault(sum(moment <= at_s for moment in ends), []).append(better)
        fresh = better_ratio(of, to, results.confidence, "confirm")
        enough = math.log(max(claim.low or 0.0, math.sqrt(fresh.median) if fresh and claim.low == 1 else 0.0, _LEAST))
        if ends and any(len(part) >= _TELLING and median(part) < enough for part in logs.values()):
            return False
    return True


def _unlike_turns(claims: Sequence[Claim], slow: Mapping[str, tuple[int, int]]) -> bool:
    """Whether levels that take turns are those of one setting more than of the other, and not of both."""
    return any(
        _fewer(*slow[one], *slow[other]) <= _UNLIKE
        for claim in claims
        if {claim.of, claim.to} <= slow.keys()
        for one, other in ((claim.of, claim.to), (claim.to, claim.of))
    )


def _fewer(some: int, of: int, others: int, of_others: int) -> float:
    """Return the chance of so few of some, or fewer, where both have the same share (Fisher's exact test).

    >>> round(_fewer(0, 10, 5, 10), 3)
    0.016
    """
    every = math.comb(of + of_others, some + others)
    return sum(math.comb(of, few) * math.comb(of_others, some + others - few) for few in range(some + 1)) / every


def _across_levels(claims: Sequence[Claim], changed: Mapping[str, str]) -> bool:
    return any(changed.get(claim.of) != changed.get(claim.to) for claim in claims)


def proposals(studies: Sequence[Study], results: Results) -> list[tuple[Study, Advice]]:
    """Return the settings worth testing on fresh runs, by what the blocks showed."""
    return [(study, advice) for study in studies for advice in study.advice(_of_file_system(study, results))]


def _of_file_system(study: Study, results: Results) -> Results:
    """Return what a study may state something of: no reads that a cache of this node's client had."""
    own = results.of_study(study.name)
    if not study.of_file_system:
        return own
    return replace(own, measured=tuple(cell for cell in own.measured if not from_own_cache(cell, own.facts)))


def _cached(studies: Sequence[Study], results: Results) -> list[Finding]:
    """Say in one line of all reads that a cache of this node's client had that they are left out."""
    kept = {cell.id for study in studies for cell in _of_file_system(study, results).measured}
    cells = tuple(cell.id for cell in results.measured if cell.id not in kept and cell.estimate is not None)
    if not cells:
        return []
    text = (
        "There are no statements about reads that a cache of this node's client answered, or may have answered, "
        "because the client had just written the data: such reads say nothing about the file system."
    )
    needs = "reads by other nodes (--hosts), or of more data than that cache holds (--data-per-rank)"
    return [Finding("reads-from-own-cache", results.get(cells[0]).study, text, "unknown", cells, needs=needs)]


def confirming(confidence: float, settings: int) -> float:
    """Return the confidence of the intervals that confirm settings, so many of which share the error.

    To confirm is a claim on the lower ends alone, so each of these may spend nearly all of it; what is left is for
    settings that are refuted.

    >>> round(confirming(0.9, 4), 4)
    0.984
    """
    return 1 - 2 * _CONFIRMING * (1 - shared_out(confidence, settings))


def _refuting(confidence: float, settings: int) -> float:
    return 1 - 2 * (1 - _CONFIRMING) * (1 - shared_out(confidence, settings))


def _judged(proposed: Sequence[tuple[Study, Advice]], results: Results) -> Iterator[Recommendation | Finding]:
    """Judge each proposed setting by its fresh runs.

    Only those with fresh runs share the error: which get any is decided by the blocks. What one that is confirmed does
    not need of it goes to the others (Holm, Scand. J. Statist. 6 (1979) 65).
    """
    tested = [advice for _, advice in proposed if None not in _fresh_ratios(advice, results, results.confidence)]
    confidences: dict[Advice, float] = {}
    while undecided := [advice for advice in tested if advice not in confidences]:
        confidence = confirming(results.confidence, len(undecided))
        won = [advice for advice in undecided if _wins(advice, results, confidence)]
        confidences |= dict.fromkeys(won or undecided, confidence)
    refuting = _refuting(results.confidence, len(tested))
    for study, advice in proposed:
        yield _judge(study, advice, results, confidences.get(advice, results.confidence), refuting)


def _judge(
    study: Study, advice: Advice, results: Results, confidence: float, refuting: float
) -> Recommendation | Finding:
    """Advise what the fresh runs confirm in every contest; say of anything else that it is refuted, or not known."""
    what = f"{advice.setting} = {advice.value}"
    contests = advice.contests()
    for contest, ratio in zip(contests, _fresh_ratios(advice, results, refuting), strict=True):
        if ratio is not None and ratio.interval is not None and ratio.interval.high < contest.threshold:
            text = f"{what} looked best in the blocks, but fresh runs refute it: {_told(contest, ratio, results)}."
            claim = Claim(contest.chosen, contest.rival, None, ratio.interval.high)
            interval = _interval(contest, ratio, results)
            return Finding(
                f"{advice.chosen}-refuted", study.name, text, "does-not", advice.evidence, interval, claims=(claim,)
            )
    ratios = list(zip(contests, _fresh_ratios(advice, results, confidence), strict=True))
    told = _all_told(ratios, results)
    contest, ratio = ratios[0]
    interval = _interval(contest, ratio, results) if ratio is not None else None
    claims = tuple(Claim(contest.chosen, contest.rival, contest.threshold) for contest in contests)
    if ratio is not None and interval is not None and _wins(advice, results, confidence):
        reason = f"{advice.reason}: {told}"
        return Recommendation(
            advice.setting, advice.value, reason, advice.evidence, interval, True, claims, ratio.median
        )
    if interval is not None and ratio is not None and _won(contest, ratio):
        # The second contest is looked at only after the first, so that both together err no more often than one.
        text = f"{what} is enough, and whether less is, too, is not known: {told}."
        return Finding(
            f"{advice.chosen}-enough", study.name, text, "measured", advice.evidence, interval, claims=claims[:1]
        )
    text = f"Whether {what} is the best choice is not known"
    needs = "a larger --budget: more fresh runs" if told else "a larger --budget: no fresh runs of it were made"
    text = f"{text}: {told}." if told else f"{text}."
    return Finding(f"{advice.chosen}-open", study.name, text, "inconclusive", advice.evidence, interval, needs)


def _fresh_ratios(advice: Advice, results: Results, confidence: float) -> list[Estimate | None]:
    return [_fresh_ratio(contest, results, confidence) for contest in advice.contests()]


def _wins(advice: Advice, results: Results, confidence: float) -> bool:
    """Tell whether the fresh runs show all that the advice says."""
    ratios = zip(advice.contests(), _fresh_ratios(advice, results, confidence), strict=True)
    return all(ratio is not None and _won(contest, ratio) for contest, ratio in ratios)


def _fresh_ratio(contest: Contest, results: Results, confidence: float) -> Estimate | None:
    return better_ratio(results.get(contest.chosen), results.get(contest.rival), confidence, "confirm")


def _won(contest: Contest, ratio: Estimate) -> bool:
    """Better means by any amount, but surely."""
    if ratio.interval is None:
        return False
    low = ratio.interval.low
    return low > contest.threshold if contest.threshold >= 1 else low >= contest.threshold


def _all_told(ratios: Sequence[tuple[Contest, Estimate | None]], results: Results) -> str:
    """Return each ratio once: the rival may be the level below."""
    return "; ".join(dict.fromkeys(_told(contest, ratio, results) for contest, ratio in ratios if ratio is not None))


def _told(contest: Contest, ratio: Estimate, results: Results) -> str:
    of = f"{ratio.median:.2f} times {describe(results.get(contest.rival))}"
    if ratio.interval is None:
        return f"{of} in {counted(ratio.runs, 'fresh run')}, too few"
    return f"{of} [{ratio.interval.low:.2f} - {ratio.interval.high:.2f}] in {ratio.runs} fresh runs"


def _interval(contest: Contest, ratio: Estimate, results: Results) -> IntervalOf | None:
    if ratio.interval is None:
        return None
    of = f"ratio to {describe(results.get(contest.rival))}, {ratio.runs} fresh paired runs"
    if contest.threshold < 1:
        of = f"{of}; {100 * contest.threshold:.0f} % of it is enough"
    return IntervalOf(ratio.interval.low, ratio.interval.high, ratio.interval.confidence, of, "times")
