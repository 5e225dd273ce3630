"""Present results of another tool as a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strakes.base.language import gettext
from strakes.model.portrait import Figure, Finding, Headline, RunWarning
from strakes.model.results import Results
from strakes.studies.study import Cells, Context, Study


class ImportedResults(Study):
    """Results that another tool reported, without confidence intervals."""

    name = "imported"
    title = "Imported figures"
    question = "What did the other tool report?"
    source = ""
    needs_pilot = False

    def cells(self, context: Context) -> Cells:
        return []

    def figures(self, results: Results) -> Sequence[Figure]:
        return self.of_phases(results, gettext("operation"), lambda cell: cell.id.rsplit(":", 1)[0])

    def findings(self, results: Results) -> Sequence[Finding]:
        evidence, stated = results.ids(results.where()), results.facts.get("stated", ())
        return [self.finding(f"stated-{index}", text, "measured", evidence) for index, text in enumerate(stated, 1)]

    def headlines(self, results: Results) -> Sequence[Headline]:
        return [Headline(cell.id.rsplit(":", 1)[0], cell.id) for cell in results.where()]


def imported_warnings(imported: Mapping[str, Any]) -> list[RunWarning]:
    """Return a warning that strakes did not measure the rates, and a warning for each remark of the parser."""
    made = f"{imported['tool']} {imported['version']}".strip()
    text = gettext(
        "These figures come from {tool}, not from strakes: single values without intervals, measured under unknown "
        "conditions.",
        tool=made,
    )
    remedy = (
        gettext("Measure again with strakes to get intervals: {command}", command=imported["again"])
        if imported.get("again")
        else gettext("Measure again with strakes to get intervals.")
    )
    keep = gettext("Consider this when you compare the figures with others.")
    return [
        RunWarning("imported", text, remedy),
        *(RunWarning("imported-note", f"{note}.", keep) for note in imported["notes"]),
    ]


def imported_scope(imported: Mapping[str, Any]) -> str:
    """Return a text that names the tool, the format and the file of imported rates."""
    origin = gettext(
        "imported from {tool} ({format}, {file})",
        tool=imported["tool"],
        format=imported["format"],
        file=imported["file"],
    )
    return f"{origin}; {gettext('the scope is as reported by that tool')}"
