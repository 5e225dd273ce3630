"""Say what to measure next: a budget for open questions, longer phases, and reads past the client's cache."""

from __future__ import annotations

from strakes.base.language import gettext
from strakes.base.units import typed_seconds
from strakes.model.portrait import Portrait
from strakes.report.facts import headlines_of
from strakes.stats.grades import MOST_TIMES, times_to_decide
from strakes.targets.mountinfo import own_cache

_MORE = "Questions without a grade (-): repeat with --budget {budget} to decide {count} of {open}."
_QUIET = "Questions without a grade (-): the runs vary too much. Repeat at a quieter time."
_LONGER = "Sustained rates (phases took less than 500 ms): --phase 1s with a larger --budget."
# The study reads files that it has written with O_DIRECT, which are not in such a cache.
_UNCACHED = "Reads without this client's cache: strakes study transfer-size DIR"


def next_steps(portrait: Portrait) -> list[str]:
    """Return a sentence for each further measurement that a survey or a study of storage suggests."""
    in_memory = any(warning.code == "memory-file-system" for warning in portrait.warnings)
    if in_memory or portrait.run.get("kind") not in ("survey", "study"):
        return []
    steps: list[str] = []
    budget_s = portrait.run.get("options", {}).get("budget_s")
    times = [
        max(times_to_decide(one.low, one.high) for one in (answer.against, *answer.others) if one.grade == "undecided")
        for answer in portrait.answers
        if answer.grade == "undecided"
    ]
    if (fitting := [factor for factor in times if factor <= MOST_TIMES]) and isinstance(budget_s, int | float):
        budget = typed_seconds(max(fitting) * budget_s, up=True)
        steps.append(gettext(_MORE, budget=budget, count=len(fitting), open=len(times)))
    elif times and not fitting:
        steps.append(gettext(_QUIET))
    if any("short-phases" in cell.warnings for _, cell in headlines_of(portrait)):
        steps.append(gettext(_LONGER))
    cached = any(one.remark and one.id.endswith("-read") for one in portrait.answers if one.study == "overview")
    if cached and portrait.target.get("direct_io") and own_cache(str(portrait.target.get("file_system", ""))):
        steps.append(gettext(_UNCACHED))
    return steps
