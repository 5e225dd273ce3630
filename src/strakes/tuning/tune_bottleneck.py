"""Find the resource that limits an application's I/O, if the runs have evidence for one. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

# A device, a link or a processor that is busy for this share of the time is the limit.
_BUSY_SHARE = 0.85
# The metadata server is the limit if opening files takes this share of the time; memory is the limit if it holds this
# share of the data.
_HALF_SHARE = 0.5
# An effect is evidence only if its whole interval is above this ratio.
_CLEAR_TIMES = 1.15
# Ignore the processor times of shorter phases, because the kernel counts them in ticks of 0.01 s.
_SHORTEST_S = 0.1


@dataclass(frozen=True)
class Bottleneck:
    """A resource that limits the rate, and the evidence in words."""

    what: What
    evidence: str


def bottlenecks(
    visits: Sequence[Visit], effects: Effects | None, settings: Mapping[str, Setting], facts: Mapping[str, Any]
) -> tuple[Bottleneck, ...]:
    """Return the resources that limit one setting, judged by its trials, the surest first.

    ``facts``: facts of the run. Only ``block_device`` and ``link_bytes_per_s`` are used.
    """
    samples = [sample for visit in visits for sample in visit.samples if sample.elapsed_s and sample.name != "make"]
    device = str((facts.get("block_device") or {}).get("name", ""))
    link = float(facts.get("link_bytes_per_s") or 0.0)
    seen = [sample.counters.get("devices", {}).get(device, {}) for sample in samples] if device else []
    targets = _busy_targets(visits)
    targets.setdefault(device, 0.0)
    busiest = max(targets, key=targets.__getitem__)
    used = [max(sample.counters.get(f"network_{way}_bytes", 0) for way in ("send", "receive")) for sample in samples]
    rates = [count / sample.elapsed_s for count, sample in zip(used, samples, strict=True)]
    busy = [counters.get("busy_s", 0.0) / sample.elapsed_s for counters, sample in zip(seen, samples, strict=False)]
    opened = [median(times) / sample.elapsed_s for sample in samples if (times := sample.column("open_s"))]
    in_memory = [
        1 - (moved["read_bytes"] + moved["write_bytes"]) / sample.bytes
        for moved, sample in zip(seen, samples, strict=False)
        if moved and sample.bytes
    ]
    link_text = f"of the {format_value(link, 'B/s')} that the link of this node can carry were used" if link else ""
    limits = (
        *_limit("data targets", busy, f"of the time the device {device} was busy"),
        *_limit("data targets", [targets[busiest]] * (busiest != device), f"of the time {busiest} was busy"),
        *_target_counts(_levels(effects, STRIPE_COUNT), settings.get(STRIPE_COUNT)),
        *_limit("node link", [rate / link for rate in rates if link], link_text),
        *_limit("this node's processors", _processors(samples), "of the time they were busy, with all programs"),
        *_limit("metadata server", opened, "of the time went into opening the files", _HALF_SHARE),
        *(_locks(_levels(effects, FILES)) if settings.get(FILES) == "shared" else ()),
        *_limit("memory and cache", in_memory, f"of the data did not reach or leave the device {device}", _HALF_SHARE),
    )
    nothing = "no device, link or processor visible from here was busy, and no setting points to one"
    return limits or (Bottleneck("unknown", nothing),)


def _limit(what: What, shares: Sequence[float], text: str, least: float = _BUSY_SHARE) -> Sequence[Bottleneck]:
    share = median(shares) if shares else 0.0
    return [Bottleneck(what, f"{min(1.0, share):.0%} {text}")] if share >= least else []


def _busy_targets(visits: Sequence[Visit]) -> dict[str, float]:
    """Return the share of the time for which each target was busy, for targets that count busy time."""
    shares: dict[str, list[float]] = {}
    for visit in visits:
        elapsed_s = sum(sample.elapsed_s for sample in visit.samples)
        for name, counters in visit.servers.items():
            if "data.busy_s" in counters and elapsed_s:
                shares.setdefault(name, []).append(counters["data.busy_s"] / elapsed_s)
    return {name: median(values) for name, values in shares.items()}


def _processors(samples: Sequence[Sample]) -> list[float]:
    shares = []
    for sample in samples:
        spent = [float(sample.counters.get(f"cpu_{what}_s", 0.0)) for what in ("user", "system", "idle", "iowait")]
        if sum(spent) >= _SHORTEST_S:
            shares.append(sum(spent[:2]) / sum(spent))
    return shares


def _target_counts(counts: Sequence[LevelEffect], now: Setting | None) -> Sequence[Bottleneck]:
    """Return the data targets as the limit if files on more targets are faster."""
    if len(counts) < 2 or counts[-1].low / counts[0].ratio <= _CLEAR_TIMES:
        return []
    fewest, most = counts[0], counts[-1]
    gain = f"{most.ratio / fewest.ratio:.2f} times as fast as on {fewest.level}"
    on_all = f"it is {gain}, and there are no more" if now == most.level else f"it would be {gain}"
    return [Bottleneck("data targets", f"on {most.level} of them {on_all}")]


def _locks(files: Sequence[LevelEffect]) -> Sequence[Bottleneck]:
    text = "the same data in one file per process is {:.2f} times as fast as in one shared file"
    own = [effect for effect in files if effect.level == "per-process" and effect.low > _CLEAR_TIMES]
    return [Bottleneck("locks", text.format(effect.ratio)) for effect in own]


def _levels(effects: Effects | None, factor: str) -> list[LevelEffect]:
    return [effect for effect in effects.levels if effect.factor == factor] if effects else []
