"""What limits an application's I/O, where the runs have evidence for it.

What they have none for is said to be unknown. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from strakes.findings.sample import Sample
from strakes.store.records import Visit
from strakes.tune.effects import Effects, LevelEffect
from strakes.tune.offers import FILES, STRIPE_COUNT
from strakes.units import format_value

What = Literal[
    "data targets", "node link", "metadata server", "locks", "this node's processors", "memory and cache", "unknown"
]

# A device, a link or a processor that is busy for this share of the time leaves no room.
_BUSY = 0.85
# Opening and closing for this share of the time is what the time goes into.
_NAMES = 0.5
# An effect is evidence where its interval begins above this.
_CLEAR = 1.15


@dataclass(frozen=True)
class Bottleneck:
    what: What
    evidence: str


def bottlenecks(
    visits: Sequence[Visit], effects: Effects | None, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[Bottleneck, ...]:
    """Of one setting, by its visits; the surest first."""
    samples = [sample for visit in visits for sample in visit.samples if sample.elapsed_s and sample.name != "make"]
    candidates = [
        *_data_targets(samples, visits, effects, settings, facts),
        *_link(samples, facts),
        *_processors(samples),
        *_names(samples),
        *_locks(effects, settings),
        *_cache(samples, facts),
    ]
    if candidates:
        return tuple(candidates)
    return (
        Bottleneck("unknown", "no device, link or processor visible from here was busy, and no setting points to one"),
    )


def _data_targets(
    samples: Sequence[Sample],
    visits: Sequence[Visit],
    effects: Effects | None,
    settings: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> list[Bottleneck]:
    candidates = []
    device = (facts.get("block_device") or {}).get("name", "")
    shares = [
        sample.counters.get("devices", {}).get(device, {}).get("busy_s", 0.0) / sample.elapsed_s for sample in samples
    ]
    if device and shares and median(shares) >= _BUSY:
        candidates.append(
            Bottleneck("data targets", f"the device {device} was busy for {min(1.0, median(shares)):.0%} of the time")
        )
    busiest = _busiest_target(visits)
    if busiest is not None and busiest[0] != device and busiest[1] >= _BUSY:
        candidates.append(
            Bottleneck("data targets", f"{busiest[0]} was busy for {min(1.0, busiest[1]):.0%} of the time")
        )
    counts = _levels(effects, STRIPE_COUNT)
    if len(counts) > 1:
        fewest, most = counts[0], counts[-1]
        gain = most.ratio / fewest.ratio
        if most.low / fewest.ratio > _CLEAR and settings.get(STRIPE_COUNT) == most.level:
            candidates.append(
                Bottleneck(
                    "data targets",
                    f"on {most.level} of them it is {gain:.2f} times as fast as on {fewest.level}, and there are no more",
                )
            )
        elif most.low / fewest.ratio > _CLEAR:
            candidates.append(
                Bottleneck(
                    "data targets",
                    f"on {most.level} of them it would be {gain:.2f} times as fast as on {fewest.level}",
                )
            )
    return candidates


def _busiest_target(visits: Sequence[Visit]) -> tuple[str, float] | None:
    """Where targets count how long they are busy."""
    shares: dict[str, list[float]] = {}
    for visit in visits:
        elapsed_s = sum(sample.elapsed_s for sample in visit.samples)
        for name, counters in visit.servers.items():
            if "data.busy_s" in counters and elapsed_s:
                shares.setdefault(name, []).append(counters["data.busy_s"] / elapsed_s)
    return max(((name, median(values)) for name, values in shares.items()), key=lambda entry: entry[1], default=None)


def _link(samples: Sequence[Sample], facts: Mapping[str, Any]) -> list[Bottleneck]:
    link = float(facts.get("link_bytes_per_s") or 0.0)
    rates = [
        max(sample.counters.get("network_send_bytes", 0), sample.counters.get("network_receive_bytes", 0))
        / sample.elapsed_s
        for sample in samples
    ]
    if not link or not rates or median(rates) < _BUSY * link:
        return []
    text = (
        f"{format_value(median(rates), 'B/s')} of the {format_value(link, 'B/s')} that the link of this node can carry"
    )
    return [Bottleneck("node link", text)]


def _processors(samples: Sequence[Sample]) -> list[Bottleneck]:
    shares = []
    for sample in samples:
        spent = [float(sample.counters.get(f"cpu_{what}_s", 0.0)) for what in ("user", "system", "idle", "iowait")]
        # The clock of processor times ticks a hundred times a second.
        if sum(spent) >= 0.1:
            shares.append((spent[0] + spent[1]) / sum(spent))
    if not shares or median(shares) < _BUSY:
        return []
    return [
        Bottleneck(
            "this node's processors",
            f"they were busy for {median(shares):.0%} of the time, including everything else that ran here",
        )
    ]


def _names(samples: Sequence[Sample]) -> list[Bottleneck]:
    shares = [median(opened) / sample.elapsed_s for sample in samples if (opened := sample.column("open_s"))]
    if not shares or median(shares) < _NAMES:
        return []
    return [Bottleneck("metadata server", f"opening the files took {median(shares):.0%} of the time")]


def _locks(effects: Effects | None, settings: Mapping[str, Any]) -> list[Bottleneck]:
    if settings.get(FILES) != "shared":
        return []
    for effect in _levels(effects, FILES):
        if effect.level == "per-process" and effect.low > _CLEAR:
            return [
                Bottleneck(
                    "locks",
                    f"the same data in files of their own is {effect.ratio:.2f} times as fast as in one shared file",
                )
            ]
    return []


def _cache(samples: Sequence[Sample], facts: Mapping[str, Any]) -> list[Bottleneck]:
    """Return data that did not come from, or go to, the device at all."""
    device = (facts.get("block_device") or {}).get("name", "")
    if not device:
        return []
    shares = []
    for sample in samples:
        moved = sample.counters.get("devices", {}).get(device)
        if moved is not None and sample.bytes:
            shares.append((moved["read_bytes"] + moved["write_bytes"]) / sample.bytes)
    if not shares or median(shares) >= 0.5:
        return []
    return [
        Bottleneck("memory and cache", f"{median(shares):.0%} of the data went to or came from the device {device}")
    ]


def _levels(effects: Effects | None, factor: str) -> list[LevelEffect]:
    return [effect for effect in effects.levels if effect.factor == factor] if effects else []
