"""Derive the search space from the application and from the abilities of the file system and the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strakes.base.units import KIB, MIB, format_bytes
from strakes.model.phases import Backend
from strakes.model.portrait import Setting
from strakes.targets.description import Layout, Striping
from strakes.tuning.advise_app import App, AppPhase
from strakes.tuning.tune_space import Constraint, Factor, SearchSpace

FILES, WRITERS, READERS, TRANSFER, INTERFACE = "files", "writers", "readers", "transfer_bytes", "interface"
STRIPE_COUNT, STRIPE_BYTES, POOL, LAYOUT = "stripe_count", "stripe_bytes", "pool", "layout"
LAYOUT_FACTORS = (STRIPE_COUNT, STRIPE_BYTES, POOL, LAYOUT)
PLAIN_LAYOUT = "plain"

POSIX, DIRECT, STDIO, MMAP, URING, URING_DIRECT = "posix", "posix direct", "stdio", "mmap", "uring", "uring direct"
# Interface -> (the engine's backend, whether it bypasses the page cache, number of parallel transfers).
INTERFACES: Mapping[str, tuple[Backend, bool, int]] = {
    POSIX: ("posix", False, 1),
    DIRECT: ("posix", True, 1),
    STDIO: ("stdio", False, 1),
    MMAP: ("mmap", False, 1),
    URING: ("uring", False, 16),
    URING_DIRECT: ("uring", True, 16),
}
_GATHERS = (POSIX, DIRECT, STDIO, MMAP)

_TRANSFERS = tuple(8 * KIB << power for power in range(10))
_STRIPES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
_DIRECT_UNIT = 4 * KIB


@dataclass(frozen=True)
class Abilities:
    """Abilities of a system, which limit the settings that a search can try.

    ``ranks``: ranks of a trial on each node. ``data_bytes``: largest transfer to try. ``interfaces``: usable I/O
    interfaces. ``layout``: present layout of new files (None: unknown, so layouts are not varied).
    """

    ranks: int
    data_bytes: int
    interfaces: tuple[str, ...]
    striping: Striping | None = None
    layout: Layout | None = None
    pools: tuple[str, ...] = ()


def offers(app: App, able: Abilities) -> SearchSpace:
    """Return the search space, whose default is the application's present setting. Pure function."""
    factors: list[Factor] = []
    constraints: list[Constraint] = []
    moving = [phase for phase in app.phases if phase.files != "same"]
    if moving:
        factors += _files_and_writers(app, moving, able.ranks)
        # With MPI-IO and libraries above it, users can only request O_DIRECT. The library chooses everything else.
        suitable = INTERFACES if app.interface == "posix" else (POSIX, DIRECT)
        names = tuple(name for name in suitable if name in able.interfaces)
        factors.append(Factor(INTERFACE, names, POSIX, ordered=False))
        constraints += _between(able.ranks, {factor.name for factor in factors})
    if any(phase.files == "same" for phase in app.phases):
        factors.append(Factor(READERS, _powers(able.ranks), able.ranks))
    now = min(able.data_bytes, 1 << (min(phase.usual_record for phase in app.phases).bit_length() - 1))
    levels = sorted({now, *(size for size in _TRANSFERS if size <= able.data_bytes)})
    factors.append(Factor(TRANSFER, tuple(levels), now))
    layouts = _layouts(able)
    factors += layouts
    plain = {factor.name: factor.default for factor in layouts if factor.name != LAYOUT}
    if len(plain) < len(layouts):
        why = "a layout of another kind defines its stripe counts and sizes"
        constraints.append(Constraint(why, lambda own: own[LAYOUT] == PLAIN_LAYOUT or plain.items() <= own.items()))
    return SearchSpace(tuple(factors), tuple(constraints))


def narrowed(space: SearchSpace, only: Mapping[str, Sequence[Setting]]) -> SearchSpace:
    """Return the space with only the values in ``only``. The first value replaces an excluded default."""
    factors = []
    for factor in space.factors:
        levels = tuple(level for level in factor.levels if level in only.get(factor.name, factor.levels))
        default = factor.default if factor.default in levels else levels[0]
        factors.append(replace(factor, levels=levels, default=default))
    return SearchSpace(tuple(factors), space.constraints)


def _files_and_writers(app: App, phases: Sequence[AppPhase], ranks: int) -> list[Factor]:
    first = phases[0]
    gathered = first.files == "gathered"
    now = "shared" if gathered else str(first.files)
    only_shared = app.interface == "pnetcdf" or any(phase.collective for phase in phases)
    files: tuple[Setting, ...] = (now,) if only_shared else ("per-process", "shared")
    writes = any(phase.operation == "write" for phase in phases)
    group = ranks if gathered or any(phase.collective for phase in phases) else min(app.grouping, ranks)
    writers = [count for count in _powers(ranks) if count * group >= ranks] if writes and group > 1 else [ranks]
    factors = [Factor(FILES, files, now, ordered=False)] if len(files) > 1 else []
    if len(writers) > 1:
        factors.append(Factor(WRITERS, tuple(writers), 1 if gathered else ranks))
    return factors


def _between(ranks: int, names: set[str]) -> list[Constraint]:
    direct = Constraint(
        f"a transfer with O_DIRECT must be a multiple of {format_bytes(_DIRECT_UNIT)}",
        lambda settings: not INTERFACES[str(settings[INTERFACE])][1] or int(settings[TRANSFER]) % _DIRECT_UNIT == 0,
    )
    merged = Constraint(
        "data of several ranks are merged by POSIX calls",
        lambda settings: settings[WRITERS] == ranks or settings[INTERFACE] in _GATHERS,
    )
    return [direct, merged] if WRITERS in names else [direct]


def _layouts(able: Abilities) -> list[Factor]:
    if able.striping is None or able.layout is None:
        return []
    now, factors = able.layout, []
    targets = able.striping.data_targets
    if now.stripe_count is not None and targets > 1:
        count = targets if now.stripe_count == -1 else now.stripe_count
        factors.append(Factor(STRIPE_COUNT, tuple(sorted({*_powers(targets), count})), count))
    if now.stripe_size_bytes is not None:
        sizes = {size for size in _STRIPES if size % able.striping.unit_bytes == 0}
        factors.append(Factor(STRIPE_BYTES, tuple(sorted({*sizes, now.stripe_size_bytes})), now.stripe_size_bytes))
    if len(able.pools) > 1 and now.pool in able.pools:
        factors.append(Factor(POOL, able.pools, now.pool, ordered=False))
    if able.striping.kinds:
        factors.append(Factor(LAYOUT, (PLAIN_LAYOUT, *able.striping.kinds.values()), PLAIN_LAYOUT, ordered=False))
    return factors


def _powers(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … up to ``most``, and ``most`` itself.

    >>> _powers(3), _powers(8)
    ((1, 2, 3), (1, 2, 4, 8))
    """
    return tuple(sorted({1 << power for power in range(most.bit_length())} | {most}))
