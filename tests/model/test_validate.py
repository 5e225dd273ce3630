"""Messages about invalid plans."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from strakes.base.errors import BadInputError
from strakes.model.plan_read import validate_plan_document

TRANSFER: dict[str, Any] = {
    "kind": "transfer",
    "name": "write",
    "operation": "write",
    "layout": "file-per-process",
    "access": "segmented",
    "transfer_bytes": 4096,
    "block_bytes": 65536,
    "segments": 1,
}
METADATA: dict[str, Any] = {
    "kind": "metadata",
    "name": "create",
    "operation": "file-create",
    "directory": "unique",
    "items": 10,
}
LEFT_OUT = object()


def plan_of(phase: dict[str, Any], **changes: object) -> dict[str, Any]:
    changed = {**copy.deepcopy(phase), **changes}
    phases = [{key: value for key, value in changed.items() if value is not LEFT_OUT}]
    return {"schema": 1, "seed": 7, "team": {"ranks": 2}, "phases": phases}


def refusal(document: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        validate_plan_document(document)
    return caught.value


@pytest.mark.parametrize(
    ("document", "key", "problem"),
    [
        (plan_of(TRANSFER, transfer_bytes=0), "phases[0].transfer_bytes", "must be at least 1, it is 0"),
        (plan_of(TRANSFER, transfer_bytes="4k"), "phases[0].transfer_bytes", 'must be a whole number, it is "4k"'),
        (plan_of(TRANSFER, operation="wirte"), "phases[0].operation", "must be one of write, read, rewrite, mixed"),
        (plan_of(TRANSFER, name=LEFT_OUT), "phases[0].name", "is missing"),
        (plan_of(TRANSFER, name="Upper"), "phases[0].name", "must be 1 to 32 of a-z"),
        (plan_of(TRANSFER, name="data\n"), "phases[0].name", "must be 1 to 32 of a-z"),
        (plan_of(TRANSFER, items=3), "phases[0].items", "is not a valid key (One of: kind, name"),
        (plan_of(TRANSFER, verify=1), "phases[0].verify", "must be true or false"),
        (plan_of(TRANSFER, read_percent=100), "phases[0].read_percent", "must be at most 99"),
        (plan_of(TRANSFER, stop={"rule": "seconds", "seconds": 0}), "phases[0].stop.seconds", "must be more than 0"),
        (
            plan_of(TRANSFER, stop={"rule": "seconds", "seconds": math.nan}),
            "phases[0].stop.seconds",
            "must be a number",
        ),
        (plan_of(TRANSFER, stop={"rule": "later"}), "phases[0].stop.rule", "must be one of amount, stonewall, seconds"),
        (plan_of(TRANSFER, stop=3), "phases[0].stop", "must be an object, it is 3"),
        (plan_of(METADATA, directory="both"), "phases[0].directory", "must be one of"),
        (plan_of(METADATA, kind="metdata"), "phases[0].kind", "must be one of transfer, metadata, stream, small-files"),
        ({**plan_of(METADATA), "schema": 2}, "schema", "must be 1, it is 2"),
        ({**plan_of(METADATA), "phases": []}, "phases", "must be a list of at least 1"),
        ({**plan_of(METADATA), "phases": {}}, "phases", "must be a list"),
        ([], "", "must be an object"),
    ],
)
def test_the_message_names_the_key_and_says_what_is_wrong(document: Any, key: str, problem: str) -> None:
    error = refusal(document)
    assert error.where == key and problem in error.what
    assert error.remedy


def test_a_second_phase_is_named_by_its_number() -> None:
    document = plan_of(TRANSFER)
    document["phases"].append({**METADATA, "items": 0})
    assert refusal(document).where == "phases[1].items"


def test_a_wrong_long_value_is_shown_shortened() -> None:
    assert len(refusal(plan_of(TRANSFER, operation="x" * 5000)).what) < 300


def test_every_key_at_fault_is_named_at_once() -> None:
    error = refusal(plan_of(TRANSFER, layout=LEFT_OUT, access="sequential", transfer_size=4096, segments=LEFT_OUT))
    for fault in ("layout is missing", "access must be", "transfer_size is not a valid key", "segments is missing"):
        assert f"phases[0].{fault}" in str(error)
