"""The engine accepts every plan that a study, the pilot or a probe makes, on every kind of file system."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from strakes.base.units import GIB, KIB, MIB
from strakes.model.plan import Plan
from strakes.runs.engine import find_engine
from strakes.studies.measure_directories import grown
from strakes.studies.neighbour import probe_plan
from strakes.studies.registry import studies
from strakes.studies.study import Context, Pilot
from strakes.survey.pilot import pilot_plan, smallest_plan
from strakes.survey.preparation import choose_cells
from strakes.survey.request import Request
from strakes.targets.description import Description, StorageTarget, Striping
from strakes.targets.lustre_target import layout_kinds


def parts(data: int, metadata: int, pools: tuple[str, ...] = (), **client: str) -> Description:
    """Describe a file system with these numbers of targets; each data target is in one of the pools."""
    return Description(
        "lab",
        "1",
        data_targets=tuple(
            StorageTarget(
                f"ost{n}", n, f"oss{n // 2}", "active", GIB, GIB, 1000, 1000, pools[n % (len(pools) or 1) :][:1]
            )
            for n in range(data)
        ),
        metadata_targets=tuple(StorageTarget(f"mdt{n}", n, f"mds{n}", "active", 0, 0, 0, 0) for n in range(metadata)),
        pools=pools,
        client=client,
    )


def lustre(data: int, metadata: int, pools: tuple[str, ...] = ()) -> dict[str, Any]:
    kinds = {**layout_kinds(data), **{f"pool {pool}": f"-c -1 -p {pool}" for pool in pools}}
    return {
        "file_system": "lustre",
        "remote": True,
        "description": parts(data, metadata, pools),
        "striping": Striping(data, 64 * KIB, kinds),
    }


# Changes of the context by kind of file system.
FILE_SYSTEMS: dict[str, dict[str, Any]] = {
    "xfs": {"file_system": "xfs", "remote": False, "description": Description("", ""), "striping": None},
    "tmpfs": {"file_system": "tmpfs", "remote": False, "description": None, "striping": None},
    "nfs": {"file_system": "nfs4", "remote": True, "description": Description("srv:/export", ""), "striping": None},
    "lustre of one server": lustre(1, 1),
    "lustre with pools": lustre(8, 2, ("flash", "disk")),
    "large lustre": lustre(2400, 5),
    "cephfs": {"file_system": "ceph", "remote": True, "description": parts(6, 3), "striping": Striping(6, 64 * KIB)},
    "beegfs": {"file_system": "beegfs", "remote": True, "description": parts(4, 2), "striping": Striping(4, 64 * KIB)},
    "gluster": {"file_system": "fuse.glusterfs", "remote": True, "description": parts(3, 0), "striping": None},
}
_NODES = {"n1": 2, "n2": 2, "n3": 2}
# Each factor is a list of levels, and a level is a set of changes to the context.
FACTORS: tuple[Sequence[Mapping[str, Any]], ...] = (
    tuple(FILE_SYSTEMS.values()),
    ({"full": False}, {"full": True}),
    ({"direct_io": True}, {"direct_io": False}, {"direct_io": None}),
    tuple({"cpus": cpus} for cpus in (1, 2, 192)),
    (
        *({"most_ranks": ranks, "nodes": {}} for ranks in (None, 1, 3, 14)),
        *({"most_ranks": ranks, "nodes": _NODES} for ranks in (3, 6)),
    ),
    tuple({"max_bytes": most} for most in (300 * KIB, 20 * MIB, 4 * GIB, 100 * GIB)),
    tuple({"max_items": most} for most in (20, 2000, 1_000_000)),
    tuple({"phase_s": phase_s} for phase_s in (0.02, 0.1, 3.0)),
    tuple({"pilot": Pilot(rate, 3 * rate, rate / 1e4, 0.1, rate / 2e4)} for rate in (3e5, 1e8, 1e11)),
    tuple({"files": files} for files in (None, 1, 100_000)),
    tuple({"data_per_rank": data} for data in (None, 4097, MIB + 1, 3 * MIB, 10**13)),
)
REQUEST = Request("survey", "", Path("/"), studies(), 60.0, 0.9, 0.1, 1, "")
# A prime number, at least the number of factors and the largest number of levels.
ORDER = 11


def contexts() -> Iterator[Context]:
    """Yield contexts in which each pair of levels of any two factors occurs.

    They are the rows of an orthogonal array of strength 2 (Bose 1938): in any two columns of (a x i + b) mod p each
    pair of symbols occurs once.
    """
    for a, b in product(range(ORDER), repeat=2):
        changes: dict[str, Any] = {"memory_bytes": 24 * GIB, "seed": 1}
        for i, levels in enumerate(FACTORS):
            changes |= levels[(a * i + b) % ORDER % len(levels)]
        yield Context(**changes)


def plans(step: int) -> Iterator[tuple[str, Plan]]:
    """Yield the name and the plan of each cell, pilot and probe, in each ``step``-th of the contexts.

    Cells are planned with and without --libcephfs. Plans for kept directories have grown as in a resumed run.
    """
    yield "neighbour", probe_plan(60.0)
    for context in islice(contexts(), 0, None, step):
        yield "pilot", pilot_plan(context.team, context.max_bytes, context.max_items, 0.5, 1)
        yield "pilot", smallest_plan(context.team, 1)
        for libcephfs in (False, True):
            request = replace(REQUEST, libcephfs=libcephfs)
            for cell in choose_cells(request, context)[0]:
                where = f"{cell.key} on {context.file_system}{' --libcephfs' * libcephfs}"
                yield where, grown(cell.plan, 3) if cell.place.kept else cell.plan


def refusals(engine: Path, named: Iterator[tuple[str, Plan]]) -> list[str]:
    """Return the engine's complaints about the plans, except about features that only this machine lacks."""
    names, lines, seen = {}, [], set()
    for number, (name, plan) in enumerate(named):
        document = json.dumps(plan.to_json())
        if document in seen:
            continue
        seen.add(document)
        names[f"p{number}"] = name
        lines.append(
            f'{{"type": "plan", "version": 1, "id": "p{number}", "directory": "/", "limit_s": 1, "check": true, '
            f'"plan": {document}}}\n'
        )
    answer = subprocess.run([engine], input="".join(lines), capture_output=True, text=True, timeout=600, check=False)
    messages = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len([one for one in messages if one["type"] == "done"]) == len(names)
    return sorted(
        f"{names[one['id']]}: {one['what']} ({one['where'].get('key', '')})"
        for one in messages
        if one["type"] == "error" and one["why"] == "the request breaks the contract"
    )


def test_the_engine_accepts_every_plan(request: pytest.FixtureRequest) -> None:
    # Every fifth context still has each level of every factor.
    step = 5 if request.config.getoption("--quick") else 1
    assert refusals(find_engine(), plans(step)) == []
