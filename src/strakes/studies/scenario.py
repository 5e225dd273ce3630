"""Questions that compare an application's usual way of I/O with alternatives, for S1's two proofs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from strakes.base.language import gettext, ngettext
from strakes.model.answers import Question
from strakes.model.results import Measured, Results
from strakes.studies.compose import ask


def way_of(cell: Measured, results: Results, everybody: Mapping[str, str], few: Mapping[bool, tuple[str, str]]) -> str:
    """Return a label of a cell's way: the last part of its key, before "-on-" and the stripe count if it has one.

    ``everybody``: labels by that part; any other part is a number. ``few``: labels for one and for several, by whether
    several nodes take part.
    """
    name, _, stripes = cell.id.rpartition("/")[2].partition(":")[0].partition("-on-")
    if name in everybody:
        way = gettext(everybody[name])
    else:
        way = ngettext(*few[bool(results.facts.get("nodes"))], int(name))
    return gettext("{way}, stripe count {stripe_count}", way=way, stripe_count=stripes) if stripes else way


def ask_way(
    study: str, title: str, before: Sequence[Measured], others: Sequence[Measured], way: Callable[[Measured], str]
) -> list[Question]:
    """Ask which way is fastest, and how much faster each alternative is than the usual way.

    ``title``: in English, as it is also a part of an id. ``way``: returns the label of a cell's way.
    """
    questions = [
        question
        for after in others
        for usual in before
        for question in ask(
            study,
            f"{after.id.split('/', 1)[1]}-speed-up",
            gettext("{title}: speed-up", title=gettext(title)),
            [(way(usual), [usual]), (way(after), [after])],
            advises=False,
        )
    ]
    every = [(way(cell), [cell]) for cell in (*before, *others)]
    return [*ask(study, f"best-{title}", gettext(title), every), *questions]
