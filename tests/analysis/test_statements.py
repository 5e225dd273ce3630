"""What a run states holds together: shares of the error, advice only where fresh runs show both halves, nothing across levels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.analysis.statements import blocks_to_decide, shared_out, state
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
        values = [level * math.exp(spread * math.sin(7 * run + 3 * number)) for run in range(RUNS)]
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


@pytest.mark.parametrize(("a", "c"), [(1.0, 1.0), (0.5, 1.1)])
def test_what_fresh_runs_leave_open_is_no_advice(a: float, c: float) -> None:
    """Nothing shows that less is worse; nothing shows that it reaches 90 % of its rival."""
    stated = state([Proposing()], results(a, 1.0, c, spread=0.3), {})
    assert stated.recommendations == ()
    assert [finding.verdict for finding in stated.findings if finding.id == "b:x-open"] == ["inconclusive"]


def test_what_fresh_runs_contradict_is_said() -> None:
    stated = state([Proposing()], results(0.5, 1.0, 2.0), {})
    (refuted,) = [finding for finding in stated.findings if finding.id == "b:x-refuted"]
    assert (refuted.verdict, stated.recommendations) == ("does-not", ())
    (claim,) = refuted.claims
    assert claim.high == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("changed", [{"b:x": "read"}, {"b:x": "read", "c:x": "write", "a:x": "read"}])
def test_nothing_is_claimed_across_levels(changed: dict[str, str]) -> None:
    stated = state([Proposing()], results(0.5, 1.0, 1.0), changed)
    assert stated.recommendations == ()
    assert all(finding.verdict == "inconclusive" and finding.claims == () for finding in stated.findings)


def test_work_that_changed_together_is_compared() -> None:
    stated = state([Proposing()], results(0.5, 1.0, 1.0), dict.fromkeys(("a:x", "b:x", "c:x"), "read"))
    assert len(stated.recommendations) == 1
