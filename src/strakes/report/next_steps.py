"""Suggest the next measurement, for example a longer one that answers open questions."""

from __future__ import annotations

import shlex

from strakes.base.foreign_text import for_shell, shell_words
from strakes.base.language import gettext
from strakes.base.units import typed_seconds
from strakes.model.portrait import Portrait
from strakes.report.facts import headlines_of
from strakes.stats.grades import MOST_TIMES, POWER, times_to_decide

# Default budget in seconds, enough for all settings of a survey on one node.
_ALL_CELLS_S = 120.0
# Suggested seconds of a phase: 2 times the minimum for a sustained rate, or 10 times if this run measured bursts.
_PHASE_S, _PHASE_AFTER_BURST_S = 1.0, 5.0
_REPLACED = {"--budget", "--phase", "--like", "--json", "--html"}  # Options that the next command does not repeat.


def next_step(portrait: Portrait) -> tuple[str, str]:
    """Return the command of the next measurement and its purpose, or two empty texts without a suggestion."""
    if portrait.run.get("kind") not in ("survey", "study"):
        return "", ""
    # For a file system in memory, the summary already asks for a directory on storage.
    if any(warning.code == "memory-file-system" for warning in portrait.warnings):
        return "", ""
    words = shell_words(for_shell("".join(portrait.reproduce[:1])))
    pairs = zip(["", *words], words, strict=False)
    command = shlex.join(word for before, word in pairs if not _REPLACED & {before, word.partition("=")[0]})
    budget_s = portrait.run.get("options", {}).get("budget_s")
    times = [
        max(times_to_decide(one.low, one.high) for one in (answer.against, *answer.others) if one.grade == "undecided")
        for answer in portrait.answers
        if answer.grade == "undecided"
    ]
    if not command or not isinstance(budget_s, int | float):
        return "", ""
    if pair := next((one.needs for one in portrait.findings if "--against" in one.needs), ""):
        return f"{command} --against DIR2 --budget {typed_seconds(2 * budget_s)}", pair
    budgets_s, phase = [0.0], ""
    shown: list[str] = []
    if fitting := [factor for factor in times if factor <= MOST_TIMES]:
        budgets_s.append(max(fitting) * budget_s)
        count = max(1, round(POWER * len(fitting)))
        shown.append(gettext("to answer about {count} of {open} open questions", count=count, open=len(times)))
    if any("short-phases" in cell.warnings for _, cell in headlines_of(portrait)):
        burst = any(warning.code == "burst" for warning in portrait.warnings)
        phase_s = _PHASE_AFTER_BURST_S if burst else _PHASE_S
        budgets_s.append(budget_s + phase_s * portrait.run.get("begun_together", {}).get("phases", 0))
        shown.append(gettext("to show sustained rates"))
        phase = f" --phase {typed_seconds(phase_s)}"
    if any("--budget" in cell.reason for cell in portrait.skipped):
        budgets_s.append(max(2 * budget_s, _ALL_CELLS_S))
        shown.append(gettext("to measure the cells that the budget left out"))
    if shown:
        if any(warning.code == "background-load" for warning in portrait.warnings):
            shown.append(gettext("preferably while no other program lowers the rates"))
        return f"{command} --budget {typed_seconds(max(budgets_s), up=True)}{phase}", gettext(", ").join(shown)
    quieter = gettext("at a quieter time, because the runs varied too much to decide the open questions")
    return (f"{command} --budget {typed_seconds(budget_s)}", quieter) if times else ("", "")
