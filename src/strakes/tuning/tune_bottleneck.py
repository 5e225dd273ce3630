"""The resource that limits an application's I/O, if the runs have evidence for one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from strakes.base.units import format_value
from strakes.model.portrait import Setting
from strakes.model.sample import Sample
from strakes.runs.records import Visit
from strakes.tuning.tune_effects import Effects, LevelEffect
from strakes.tuning.tune_offers import FILES, STRIPE_COUNT

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
    """A limiting resource, and the evidence in words."""

    what: What
    evidence: str


def bottlenecks(
    visits: Sequence[Visit], effects: Effects | None, settings: Mapping[str, Setting], facts: Mapping[str, Any]
) -> tuple[Bottleneck, ...]:
    """Return the limits of one setting from its visits, the surest first.

    ``facts``: of the run; ``block_device`` and ``link_bytes_per_s`` are used.
    """
    samples = [sample for visit in visits for sample in visit.samples if sample.elapsed_s and sample.name != "make"]
    device = str((facts.get("block_device") or {}).get("name", ""))
    limits = (
        *_data_targets(samples, visits, device),
        *_target_counts(_levels(effects, STRIPE_COUNT), settings.get(STRIPE_COUNT)),
        *_link(samples, float(facts.get("link_bytes_per_s") or 0.0)),
        *_processors(samples),
        *_names(samples),
        *(_locks(_levels(effects, FILES)) if settings.get(FILES) == "shared" else ()),
        *(_cache(samples, device) if device else ()),
    )
    nothing = "no device, link or processor visible from here was busy, and no setting points to one"
    return limits or (Bottleneck("unknown", nothing),)


def _data_targets(samples: Sequence[Sample], visits: Sequence[Visit], device: str) -> Iterator[Bottleneck]:
    shares = [
        sample.counters.get("devices", {}).get(device, {}).get("busy_s", 0.0) / sample.elapsed_s for sample in samples
    ]
    busy = [(f"the device {device}", median(shares))] if device and shares else []
    busiest = _busiest_target(visits)
    if busiest is not None and busiest[0] != device:
        busy.append(busiest)
    for name, share in busy:
        if share >= _BUSY:
            yield Bottleneck("data targets", f"{name} was busy for {min(1.0, share):.0%} of the time")


def _busiest_target(visits: Sequence[Visit]) -> tuple[str, float] | None:
    """Return the target that was busy longest and its share of the time, where targets count that."""
    shares: dict[str, list[float]] = {}
    for visit in visits:
        elapsed_s = sum(sample.elapsed_s for sample in visit.samples)
        for name, counters in visit.servers.items():
            if "data.busy_s" in counters and elapsed_s:
                shares.setdefault(name, []).append(counters["data.busy_s"] / elapsed_s)
    return max(((name, median(values)) for name, values in shares.items()), key=lambda entry: entry[1], default=None)


def _target_counts(counts: Sequence[LevelEffect], now: Setting | None) -> Iterator[Bottleneck]:
    """Yield data targets as the limit if more of them are faster."""
    if len(counts) < 2 or counts[-1].low / counts[0].ratio <= _CLEAR:
        return
    fewest, most = counts[0], counts[-1]
    gain = f"{most.ratio / fewest.ratio:.2f} times as fast as on {fewest.level}"
    on_all = f"it is {gain}, and there are no more" if now == most.level else f"it would be {gain}"
    yield Bottleneck("data targets", f"on {most.level} of them {on_all}")


def _link(samples: Sequence[Sample], link_bytes_per_s: float) -> Iterator[Bottleneck]:
    rates = [
        max(sample.counters.get("network_send_bytes", 0), sample.counters.get("network_receive_bytes", 0))
        / sample.elapsed_s
        for sample in samples
    ]
    if link_bytes_per_s and rates and median(rates) >= _BUSY * link_bytes_per_s:
        used, possible = format_value(median(rates), "B/s"), format_value(link_bytes_per_s, "B/s")
        yield Bottleneck("node link", f"{used} of the {possible} that the link of this node can carry")


def _processors(samples: Sequence[Sample]) -> Iterator[Bottleneck]:
    shares = []
    for sample in samples:
        spent = [float(sample.counters.get(f"cpu_{what}_s", 0.0)) for what in ("user", "system", "idle", "iowait")]
        # The clock of processor times ticks a hundred times a second.
        if sum(spent) >= 0.1:
            shares.append((spent[0] + spent[1]) / sum(spent))
    if shares and median(shares) >= _BUSY:
        text = f"they were busy for {median(shares):.0%} of the time, including everything else that ran here"
        yield Bottleneck("this node's processors", text)


def _names(samples: Sequence[Sample]) -> Iterator[Bottleneck]:
    shares = [median(opened) / sample.elapsed_s for sample in samples if (opened := sample.column("open_s"))]
    if shares and median(shares) >= _NAMES:
        yield Bottleneck("metadata server", f"opening the files took {median(shares):.0%} of the time")


def _locks(files: Sequence[LevelEffect]) -> Iterator[Bottleneck]:
    for effect in files:
        if effect.level == "per-process" and effect.low > _CLEAR:
            text = f"the same data in one file per process is {effect.ratio:.2f} times as fast as in one shared file"
            yield Bottleneck("locks", text)


def _cache(samples: Sequence[Sample], device: str) -> Iterator[Bottleneck]:
    """Yield memory as the limit if most data did not reach the device."""
    shares = []
    for sample in samples:
        moved = sample.counters.get("devices", {}).get(device)
        if moved is not None and sample.bytes:
            shares.append((moved["read_bytes"] + moved["write_bytes"]) / sample.bytes)
    if shares and median(shares) < 0.5:
        yield Bottleneck(
            "memory and cache", f"{median(shares):.0%} of the data went to or came from the device {device}"
        )


def _levels(effects: Effects | None, factor: str) -> list[LevelEffect]:
    return [effect for effect in effects.levels if effect.factor == factor] if effects else []
