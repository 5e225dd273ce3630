"""Messages with counts use the singular for one and the plural for two."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.accept.service_level import Kept, parse_service_level
from strakes.api import Table
from strakes.errors import BadInputError
from strakes.interop.commands.mdtest import translate
from strakes.predict.namespace import NamespacePlan, Share, Walk, render_namespace
from strakes.report.notices import Notice
from strakes.targets.quota import Quota

SEVERAL_OF_ONE = re.compile(r"(?<![\d.,-])1 (?:[a-z]+ )?[a-z]*[^s\W]s\b")


def too_few_items(number: int) -> str:
    with pytest.raises(BadInputError) as caught:
        translate(["-n", str(number), "-z", "1", "-b", "8", "-d", "/tmp"], None, 1)
    return caught.value.why


def sharing(number: int) -> str:
    paths = tuple(Path(f"/home/{name}") for name in "ab"[:number])
    shares = (Share(0, paths, 0.5),) * number
    plan = NamespacePlan(Path("/home"), number, number, shares, (Path("/home/a"), 0.5))
    walk = Walk(0, 0.0, 0.0, read=number, told=number)
    return "\n".join(render_namespace(plan, walk, ()))


RENDERED: dict[str, Callable[[int], str]] = {
    "quota": lambda number: str(Quota("user 7", 0, 0, 0, number)),
    "mdtest": too_few_items,
    "table": lambda number: repr(Table([1] * number, lambda _row: {})),
    "notice": lambda number: Notice("cache-suspect", (), "", ("cell",) * number).extent,
    "service level": lambda number: str(
        Kept(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), number, 0)
    ).partition(":")[2],
    "namespace": sharing,
}


@pytest.mark.parametrize("name", RENDERED)
def test_one_is_singular_and_two_is_plural(name: str) -> None:
    one, two = (RENDERED[name](number) for number in (1, 2))
    assert not SEVERAL_OF_ONE.search(one), one
    assert re.search(r"\b2 [a-z ]*s\b", two), two
