"""``strakes knobs list`` shows the value that servers use for an unset knob."""

from __future__ import annotations

import pytest

from strakes.cli.knobs import effective_text
from strakes.control.knob import catalogue
from strakes.control.knob_change import Reading


@pytest.mark.parametrize(
    ("own", "used", "shown"),
    [
        (None, {"mds.a": "4294967296"}, "(not set; in use by the daemons)"),
        (None, {}, ""),
        ("1073741824", {"mds.a": "1073741824"}, ""),
    ],
)
def test_the_effective_value_of_an_unset_knob_is_shown(own: str | None, used: dict[str, str], shown: str) -> None:
    knob = next(knob for knob in catalogue() if knob.in_force and knob.name == "mds_cache_memory_limit")
    text = effective_text(Reading(knob, {"mds": own}), used)
    assert text.endswith(shown) and ("(not set; in use by the daemons)" in text) == bool(shown)
    assert knob.shown(next(iter(used.values()), own)) in text
