"""What a portrait names that did not change, and settings that it gives as the reason of what comes with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bench.truth.planted import State, Truth
from strakes.findings.portrait import Portrait
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import format_bytes

_SLACK = 1e-6
# Of the phases of a kind of work that is named as a whole, so many changed at least.
_MOST = 0.5
_CHANGES = (
    r"The level of (.+?) changed ",
    r"Two levels of (.+?) take turns",
    r"the speed of (.+?) was ",
)
_METADATA = ("create", "remove", "rename", "stat", "open")
_DATA = ("write", "read")
_SEVERAL = {
    "all that was measured": (*_METADATA, *_DATA),
    "all metadata operations": _METADATA,
    "all reads and writes": _DATA,
}
# So a sentence on a setting says that something else came with it.
_TOLD_OF_AMOUNT = "as much data"


def named_falsely(portrait: Portrait, phases: Mapping[str, tuple[Phase, int]], truth: Truth) -> Iterator[str]:
    """Kinds of work that are said to have changed and did not, at any time.

    ``phases``: of each measure. ``truth``: with all its states.
    """
    moved: dict[str, list[bool]] = {}
    for phase, ranks in phases.values():
        moved.setdefault(_kind(phase), []).append(_moved(phase, ranks, truth))
    for warning in portrait.warnings:
        if warning.code != "not-stationary":
            continue
        found = next((found for pattern in _CHANGES if (found := re.search(pattern, warning.text))), None)
        if found is None:
            continue
        kinds = found[1].split(", ")
        # A figure of its own, or a part of a kind of work, has commas and names of kinds in it, too.
        is_list = all(kind.split(" (")[0] in (*_METADATA, *_DATA) for kind in kinds)
        named = _SEVERAL.get(found[1])
        names = named or (kinds if is_list else [found[1]])
        for name in names:
            kind = name.split(" (")[0] if is_list or named else ""
            if name in moved:
                of = moved[name]
            else:
                # Of a part of its figures: these are the ones that have to have changed.
                cells = [phases[cell] for cell in warning.cells if cell in phases]
                of = [_moved(*one, truth) for one in cells if not kind or _is_part(one[0], kind, name)]
            if sum(of) < _MOST * len(of):
                yield f"{warning.text} But {name} did not."


def _kind(phase: Phase) -> str:
    if isinstance(phase, TransferPhase):
        return phase.operation
    words = phase.operation.split("-") if isinstance(phase, MetadataPhase) else ()
    return next((kind for kind in _METADATA if kind in words), "")


def _is_part(phase: Phase, kind: str, name: str) -> bool:
    """Whether a phase is of a kind of work and of one of the sizes of calls that a name has in brackets."""
    if _kind(phase) != kind or not isinstance(phase, TransferPhase):
        return _kind(phase) == kind
    calls = f"{format_bytes(phase.transfer_bytes)}{' direct' if phase.direct else ''}"
    return calls in name.partition(" (")[2].removesuffix(")").split("; ")


def _moved(phase: Phase, ranks: int, truth: Truth) -> bool:
    rates = [truth.rate(phase, ranks, state) for state in truth.states]
    return max(rates) > min(rates) * (1 + _SLACK)


def amounts_in_its_place(
    text: str, of: tuple[Phase, int], to: tuple[Phase, int], state: State, truth: Truth
) -> float | None:
    """Return the ratio with as much data for each rank on both sides, where a claim on ranks does not tell of that.

    None where nothing but the ranks differs, or the text tells.
    """
    (one, ranks), (other, others) = of, to
    if (
        ranks == others
        or not isinstance(one, TransferPhase)
        or not isinstance(other, TransferPhase)
        or one.block_bytes == other.block_bytes
        or _TOLD_OF_AMOUNT in text
    ):
        return None
    alike = replace(one, block_bytes=other.block_bytes)
    return truth.rate(alike, ranks, state) / truth.rate(other, others, state)
