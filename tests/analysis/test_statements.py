"""What a run states holds together: shares of the error, advice only where fresh runs show both halves, nothing across levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.analysis.statements import blocks_to_decide, confirming, shared_out, state, unless_refuted
from strakes.findings.cell import Cell
from strakes.findings.claims import Claim
from strakes.findings.portrait import CellEstimate, Figure, Finding, Headline, SkippedCell
from strakes.findings.results import Measured, Observation, Results
from strakes.findings.sample import Sample
from strakes.studies.study import Advice, Context, Study

RUNS = 16


class Proposing(Study):
    """Proposes "b" against its rival "c" and the level below, "a"; finds that b is at least as good as c."""

    name = "proposing"
    title = question = source = "none"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        return ()

    def figures(self, results: Results) -> Sequence[Figure]:
        return ()

    def findings(self, results: Results) -> Sequence[Finding]:
        claims = (Claim("b:x", "c:x", 0.9),)
        return [Finding("f", self.name, "b suffices", "measured", ("b:x", "c:x"), claims=claims)]

    def advice(self, results: Results) -> Sequence[Advice]:
        return [Advice("level", "b", "it suffices", "b:x", "c:x", 0.9, ("b:x",), below="a:x")]

    def headlines(self, results: Results) -> Sequence[Headline]:
        return ()


def results(a: float, b: float, c: float, spread: float = 0.01) -> Results:
    """Fresh runs of three levels, alike but for these factors and a little scatter."""
    measured = []
    for number, (name, level) in enumerate((("a:x", a), ("b:x", b), ("c:x", c))):
        values = [level * math.exp(spread * math.sin(17 * run + 3 * number)) for run in range(RUNS)]
        runs = tuple(
            Observation(run, purpose, value, 1, Sample("x"))
            for purpose in ("measure", "confirm")
            for run, value in enumerate(values)
        )
        estimate = CellEstimate(name, "proposing", {}, level, None, None, 0.9, RUNS, "op/s", "", tuple(values))
        measured.append(Measured(name, "proposing", {"level": name}, "op/s", runs, estimate))
    return Results(tuple(measured), 0.9, {})


@given(st.integers(1, 200), st.floats(0.5, 0.999))
def test_all_that_is_said_together_spends_no_more_than_the_error(statements: int, confidence: float) -> None:
    each = 1 - shared_out(confidence, statements)
    # Findings and advice have a share each; changes of level have the rest.
    assert 2 * statements * each < 1 - confidence
    assert 2 ** -(blocks_to_decide(confidence, statements) - 2) <= each * 1.0001


def test_advice_stands_where_fresh_runs_show_both_halves() -> None:
    stated = state([Proposing()], results(0.5, 1.0, 1.0), {})
    (advice,) = stated.recommendations
    assert (advice.setting, advice.value, advice.confirmed) == ("level", "b", True)
    assert advice.claims == (Claim("b:x", "c:x", 0.9), Claim("b:x", "a:x", 1.0))


def test_what_fresh_runs_leave_open_is_no_advice() -> None:
    """Nothing shows that it reaches 90 % of its rival."""
    stated = state([Proposing()], results(0.5, 1.0, 1.1, spread=0.3), {})
    assert stated.recommendations == ()
    assert [finding.verdict for finding in stated.findings if finding.id == "b:x-open"] == ["inconclusive"]


def test_a_setting_that_is_enough_is_said_to_be_where_less_is_not_shown_to_be_worse() -> None:
    stated = state([Proposing()], results(1.0, 1.0, 1.0, spread=0.03), {})
    assert stated.recommendations == ()
    (enough,) = [finding for finding in stated.findings if finding.id == "b:x-enough"]
    assert (enough.verdict, enough.claims) == ("measured", (Claim("b:x", "c:x", 0.9),))


def test_what_is_enough_claims_nothing_across_levels() -> None:
    stated = state([Proposing()], results(1.0, 1.0, 1.0, spread=0.03), {"b:x": "read"})
    assert not any(finding.claims for finding in stated.findings)


class ProposingTwo(Proposing):
    """Proposes "d" besides, of which there are fresh runs only where its measures are those of the others."""

    def advice(self, results: Results) -> Sequence[Advice]:
        second = Advice("other", "d", "it suffices", "d:x", "c:x", 0.9, ("d:x",))
        return [*super().advice(results), second]


def test_what_was_not_measured_again_takes_no_share_of_the_error() -> None:
    whole = results(0.5, 1.0, 1.0)
    unseen = replace(whole.get("c:x"), id="d:x", observations=())
    (alone,) = state([Proposing()], whole, {}).recommendations
    (beside,) = state([ProposingTwo()], replace(whole, measured=(*whole.measured, unseen)), {}).recommendations
    assert beside.interval == alone.interval


def test_what_is_confirmed_leaves_its_share_of_the_error_to_the_others() -> None:
    whole = results(0.5, 1.0, 1.0)
    hard = replace(results(0.5, 1.0, 1.0, spread=0.3).get("b:x"), id="d:x")
    stated = state([ProposingTwo()], replace(whole, measured=(*whole.measured, hard)), {})
    assert [advice.value for advice in stated.recommendations] == ["b"]
    (left,) = [finding.interval for finding in stated.findings if finding.id == "d:x-open"]
    assert left is not None and left.confidence == pytest.approx(confirming(0.9, 1))


@given(st.integers(1, 100), st.floats(0.5, 0.99))
def test_confirming_and_refuting_spend_no_more_than_the_share_of_a_setting(settings: int, confidence: float) -> None:
    each = 1 - shared_out(confidence, settings)
    assert (1 - confirming(confidence, settings)) / 2 < each


def test_what_fresh_runs_contradict_is_said() -> None:
    stated = state([Proposing()], results(0.5, 1.0, 2.0), {})
    (refuted,) = [finding for finding in stated.findings if finding.id == "b:x-refuted"]
    assert (refuted.verdict, stated.recommendations) == ("does-not", ())
    (claim,) = refuted.claims
    assert claim.high == pytest.approx(0.5, rel=0.05)
    (block,) = [finding for finding in stated.findings if finding.id == "f"]
    assert (block.verdict, block.claims) == ("inconclusive", ())
    assert block.statement == "In the blocks, but not in the fresh runs: b suffices"


@pytest.mark.parametrize(("of", "to", "low", "high"), [("b:x", "c:x", 0.9, None), ("c:x", "b:x", None, 1.1)])
@pytest.mark.parametrize("refuted", [Claim("b:x", "c:x", high=0.7), Claim("c:x", "b:x", low=1.5)])
def test_a_finding_that_fresh_runs_contradict_in_either_order_is_undecided(
    of: str, to: str, low: float | None, high: float | None, refuted: Claim
) -> None:
    finding = Finding("f", "s", "as before", "holds", (), claims=(Claim(of, to, low, high),))
    assert unless_refuted(finding, [refuted]).verdict == "inconclusive"
    assert unless_refuted(finding, [replace(refuted, of="d:x")]) == finding


@pytest.mark.parametrize("changed", [{}, {"b:x": "read", "c:x": "read"}])
def test_what_fresh_runs_contradict_is_of_their_time_only_where_blocks_or_levels_differed(
    changed: dict[str, str],
) -> None:
    fresh = results(0.5, 1.0, 2.0)
    measured = list(fresh.measured)
    if not changed:
        runs = tuple(
            replace(seen, value=seen.value / 3) if seen.purpose == "measure" else seen
            for seen in measured[2].observations
        )
        measured[2] = replace(measured[2], observations=runs)
    stated = state([Proposing()], replace(fresh, measured=tuple(measured)), changed)
    (open_one,) = [finding for finding in stated.findings if finding.id == "b:x-refuted"]
    assert (open_one.verdict, open_one.claims, stated.recommendations) == ("inconclusive", (), ())
    assert open_one.statement.startswith("From 0 ns after the first run on, and perhaps not before: ")


@pytest.mark.parametrize("changed", [{"b:x": "read"}, {"b:x": "read", "c:x": "write", "a:x": "read"}])
def test_nothing_is_claimed_across_levels(changed: dict[str, str]) -> None:
    stated = state([Proposing()], results(0.5, 1.0, 1.0), changed)
    assert stated.recommendations == ()
    assert all(finding.verdict == "inconclusive" and finding.claims == () for finding in stated.findings)


def test_work_that_changed_together_is_compared() -> None:
    stated = state([Proposing()], results(0.5, 1.0, 1.0), dict.fromkeys(("a:x", "b:x", "c:x"), "read"))
    assert len(stated.recommendations) == 1


@pytest.mark.parametrize("less", [2.0, 1.0])
def test_a_setting_is_advised_where_it_was_better_at_all_levels_of_its_work(less: float) -> None:
    """``less``: how many times as good the level below was before the change."""
    found = results(0.5, 1.0, 1.0)
    measured = [
        replace(
            cell,
            observations=tuple(
                replace(
                    seen,
                    at_s=float(seen.block),
                    value=seen.value * (less if seen.block < RUNS / 2 and cell.id == "a:x" else 1.0),
                )
                if seen.purpose == "measure"
                else replace(seen, at_s=100.0)
                for seen in cell.observations
            ),
        )
        for cell in found.measured
    ]
    names = ("a:x", "b:x", "c:x")
    moments = dict.fromkeys(names, (RUNS / 2,))
    stated = state([Proposing()], replace(found, measured=tuple(measured)), dict.fromkeys(names, "read"), moments)
    assert len(stated.recommendations) == (less == 1.0)


@pytest.mark.parametrize("slow_below", [0, 5])
def test_a_setting_is_not_advised_where_levels_take_turns_that_its_rival_does_not_have(slow_below: int) -> None:
    slow = {"a:x": (slow_below, 20), "b:x": (6, 20), "c:x": (6, 20)}
    stated = state([Proposing()], results(0.5, 1.0, 1.0), dict.fromkeys(slow, "read"), {}, slow)
    assert len(stated.recommendations) == (slow_below == 5)


class Undecided(Proposing):
    """Holds bounds against a claim that they leave open."""

    def findings(self, results: Results) -> Sequence[Finding]:
        (decided,) = super().findings(results)
        claims = (Claim("b:x", "c:x", 0.8, 1.5),)
        return [
            decided,
            Finding("g", self.name, "b is as fast: INCONCLUSIVE", "inconclusive", ("b:x",), claims=claims),
            Finding("h", self.name, "b reads 1 GiB/s.", "measured", ("b:x",)),
        ]


def test_what_is_inconclusive_and_what_compares_nothing_are_not_counted_as_decided_comparisons() -> None:
    stated = state([Undecided()], results(0.5, 1.0, 1.0), {})
    assert [bool(finding.claims) for finding in stated.findings] == [True, False, False]
    told = stated.told_with(0.9)
    assert told.startswith(
        "3 findings (decided comparisons: 1) and 1 proposed setting (confirmed: 1): the decided comparisons and "
        "confirmed settings are all true together"
    )


class BeatsBelow(Proposing):
    """Its rival is the level below."""

    def advice(self, results: Results) -> Sequence[Advice]:
        return [Advice("level", "b", "it suffices", "b:x", "a:x", 0.9, ("b:x",), below="a:x")]


@pytest.mark.parametrize("a", [0.5, 1.0])
def test_a_ratio_to_a_rival_that_is_the_level_below_is_told_once(a: float) -> None:
    stated = state([BeatsBelow()], results(a, 1.0, 1.0), {})
    (text,) = [
        *(recommendation.reason for recommendation in stated.recommendations),
        *(finding.statement for finding in stated.findings if finding.id == "b:x-enough"),
    ]
    assert text.count("fresh runs") == 1


def test_what_removed_files_cost_is_not_known_where_all_creating_changed() -> None:
    class Churning(Proposing):
        def findings(self, results: Results) -> Sequence[Finding]:
            claims = (Claim("b:x", "c:x", 0.9),)
            text = "creating is as fast where files were removed. Removed files cost little."
            return [Finding("s-churned", self.name, text, "measured", ("b:x", "c:x"), claims=claims, tone="good")]

        def advice(self, results: Results) -> Sequence[Advice]:
            return []

    told = [
        state([Churning()], results(0.5, 1.0, 1.0), changed).findings[-1]
        for changed in ({}, {"b:x": "create", "c:x": "create"})
    ]
    assert [finding.tone for finding in told] == ["good", "neutral"]
    assert told[1].statement.startswith("What removed files cost is not known") and told[1].claims == ()
