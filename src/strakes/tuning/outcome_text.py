"""The end of a search on one screen."""

from __future__ import annotations

from pathlib import Path

from strakes.base.units import counted, format_bytes
from strakes.tuning.outcome import TuningOutcome
from strakes.tuning.tune_effects import StepBack
from strakes.tuning.tune_words import named, shown, typed

_WORTH_SAYING = 0.02


def render(outcome: TuningOutcome, report: Path) -> str:
    """As text."""
    search = outcome.search
    system = outcome.facts.get("file_system", "this file system")
    searched = (
        f"{counted(len(search.space.points), 'setting')}, {counted(len(search.told), 'run')}, "
        f"{outcome.evaluations:.0f} evaluations (full runs)"
    )
    lines = [
        f"{outcome.app.title} on {system}: {searched}",
        f"measured with {counted(outcome.scale.ranks, 'rank')}, {format_bytes(outcome.scale.data_bytes)} each",
        "",
        f"Result      {outcome.statement}",
        f"Default     {typed(outcome.default)}",
    ]
    if search.best != search.space.default:
        lines.append(f"{'Best' if outcome.verdict == 'better' else 'Winner':<12}{typed(outcome.best)}")
    parts = {part.factors[0]: part.share for part in outcome.effects.parts}
    mattered = [f"{named(name)}: {parts[name]:.0%} of the variance between settings" for name in outcome.effects.matter]
    if mattered and outcome.effects.pairs and outcome.effects.pairs[0].share > _WORTH_SAYING:
        pair = outcome.effects.pairs[0]
        mattered.append(f"{' and '.join(map(named, pair.factors))}: {pair.share:.0%} only together")
    lines += _under("Mattered", mattered)
    rest = [named(name) for name in parts if name not in outcome.effects.matter]
    if rest:
        lines.append(f"Not shown   to matter: {', '.join(rest)}")
    lines += _under("Each gives", [_step(step) for step in outcome.effects.steps])
    for which, limits in outcome.limits.items():
        lines += [f"Limited     {which}: {limit.what}: {limit.evidence}" for limit in limits]
    correlation = search.rank_correlation
    if correlation is not None:
        used = "used" if search.uses_low else "too different to be used"
        lines.append(
            f"Cheap runs  {search.rules.low_share:.0%} of the data; correlation with the ranks of full runs "
            f"{correlation:.2f}: {used}"
        )
    pastes = [f"\n--- {paste.title} ({paste.where})\n{paste.text.rstrip()}" for paste in outcome.pastes]
    return "\n".join([*lines, f"Report      {report}", *pastes])


def _step(step: StepBack) -> str:
    change = f"{named(step.factor)} {shown(step.factor, step.level)} instead of {shown(step.factor, step.default)}"
    return f"{change}: {step.ratio:.2f} times [{step.low:.2f} - {step.high:.2f}], by the model"


def _under(title: str, lines: list[str]) -> list[str]:
    """Put the title before the first line."""
    return [f"{title if number == 0 else '':<12}{line}" for number, line in enumerate(lines)]
