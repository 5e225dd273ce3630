from __future__ import annotations

import dataclasses
import json
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings

from model.strategies import plans
from strakes.base.schemas import load_schema
from strakes.model.phases import MetadataPhase, MixedPhase, Part, Stop, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.model.plan_read import plan_from_json

KINDS: dict[str, type[Phase]] = {kind.kind: kind for kind in get_args(Phase)}


@settings(deadline=None)
@given(plans)
def test_a_plan_survives_its_json_form(plan: Plan) -> None:
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize(("kind", "phase"), KINDS.items())
def test_the_model_has_the_keys_the_defaults_and_the_listed_values_of_the_schema(kind: str, phase: type[Phase]) -> None:
    rules = load_schema("plan")["$defs"][kind]["properties"]
    defaults = {one.name: one.default for one in dataclasses.fields(phase)}
    types = get_type_hints(phase)
    assert set(defaults) == set(rules)
    for key, rule in rules.items():
        if "enum" in rule and key != "backend":
            assert list(get_args(types[key])) == rule["enum"], key
        if "default" in rule:
            default = defaults[key]
            if isinstance(default, Stop):
                default = default.to_json()
            assert (list(default) if isinstance(default, tuple) else default) == rule["default"], key


def test_omitted_keys_and_explicit_defaults_give_the_same_plan() -> None:
    short = {"kind": "metadata", "name": "c", "operation": "file-create", "directory": "unique", "items": 3}
    document = {"schema": 1, "seed": 0, "team": {"ranks": 1}, "phases": [short]}
    full = plan_from_json(document).to_json()
    assert plan_from_json(full).fingerprint() == plan_from_json(document).fingerprint() and full["phases"] != [short]


def test_a_grouping_without_writers_reaches_the_engine_which_refuses_it() -> None:
    phase = TransferPhase("w", "write", "shared-file", "segmented", 4096, 4096, grouping="global")
    assert plan_from_json(Plan(1, (phase,)).to_json()).phases == (phase,)


def test_the_seed_is_not_part_of_the_fingerprint_but_the_amounts_are() -> None:
    phases, more = ((MetadataPhase("c", "file-create", "unique", items=items),) for items in (3, 4))
    one = Plan(2, phases, seed=1).fingerprint()
    assert one == Plan(2, phases, seed=2).fingerprint()
    assert one not in {Plan(3, phases, seed=1).fingerprint(), Plan(2, more, seed=1).fingerprint()}


def test_a_mixed_phase_costs_what_its_parts_cost() -> None:
    dump = TransferPhase("dump", "write", "file-per-process", "segmented", 4096, 8192)
    make = MetadataPhase("make", "file-create", "unique", items=10, file_bytes=100)
    plan = Plan(4, (MixedPhase("both", (Part(3, dump), Part(1, make))),))
    assert plan.bytes_on_target() == 3 * 8192 + 10 * 100 and plan.inodes_on_target() == 1 + 3 + 10 + 1
    assert plan.phases[0].operations(4) == 3 * 2 + 10


def test_a_quarter_of_the_ranks_does_a_quarter_of_the_operations_on_shared_items() -> None:
    look = MetadataPhase("look", "file-stat", "shared", items=10, share="all")
    assert look.operations(4) == 160 and MixedPhase("both", (Part(1, look),)).operations(4) == 40


PLAN = """{"schema": 1, "seed": %s, "team": {"ranks": %s}, "phases": [{"kind": "transfer", "name": "w", "operation": "write",
"layout": "shared-file", "access": "segmented", "transfer_bytes": 4096, "block_bytes": 8192, "segments": %s,
"stop": {"rule": "stonewall", "seconds": %s}}]}"""


def test_four_and_four_point_zero_are_the_same_plan() -> None:
    whole, decimal = (
        plan_from_json(json.loads(PLAN % numbers)) for numbers in (("1", "2", "4", "5"), ("1.0", "2.0", "4.0", "5.0"))
    )
    assert whole == decimal and whole.fingerprint() == decimal.fingerprint()
