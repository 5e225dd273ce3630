"""Equal plans have equal fingerprints, however their numbers are written."""

from __future__ import annotations

import json

from strakes.model.plan import plan_from_json

PLAN = """{"schema": 1, "seed": %s, "team": {"ranks": %s}, "phases": [{"kind": "transfer", "name": "w", "operation": "write",
"layout": "shared-file", "access": "segmented", "transfer_bytes": 4096, "block_bytes": 8192, "segments": %s,
"stop": {"rule": "stonewall", "seconds": %s}}]}"""


def test_four_and_four_point_zero_are_the_same_plan() -> None:
    whole, decimal = (
        plan_from_json(json.loads(PLAN % numbers)) for numbers in (("1", "2", "4", "5"), ("1.0", "2.0", "4.0", "5.0"))
    )
    assert whole == decimal
    assert whole.fingerprint() == decimal.fingerprint()


def test_the_seed_is_not_part_of_the_fingerprint_but_the_amount_is() -> None:
    first, other_seed, other_amount = (
        plan_from_json(json.loads(PLAN % numbers)).fingerprint()
        for numbers in (("1", "2", "4", "5"), ("7", "2", "4", "5"), ("1", "2", "8", "5"))
    )
    assert first == other_seed
    assert first != other_amount
