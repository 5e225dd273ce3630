"""The catalogue of knobs is consistent, and an invalid entry is named."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.control.knob import PLACEHOLDERS, Answer, Kind, Knob, Where, catalogue, find, load

# Parameters of StorNext that were tuned (Quantum, 2011).
COUNTERPARTS = ("buffer cache", "inode cache", "thread pool", "block size", "client cache buffer")
GOOD = """file_systems = ["anyfs"]

[[knob]]
name = "threads"
meaning = "Threads."
kind = "integer"
least = 1
where = "client"
file = "/proc/sys/any/threads"
source = "https://example.org/"

[[knob]]
name = "cache"
meaning = "Cache."
kind = "bytes"
where = "cluster"
read = ["any", "get", "cache"]
write = ["any", "set", "cache={value}"]
source = "https://example.org/"
"""


def of(file_system: str) -> dict[str, Knob]:
    return {knob.name: knob for knob in catalogue() if file_system in knob.file_systems}


@pytest.mark.parametrize("file_system", ["lustre", "ceph", "fuse.glusterfs", "beegfs", "gpfs", "cvfs"])
def test_every_stornext_parameter_has_a_counterpart(file_system: str) -> None:
    assert {knob.counterpart for knob in of(file_system).values()} >= set(COUNTERPARTS)


def test_values_at_the_top_of_a_file_are_defaults_for_its_knobs() -> None:
    threads = find("performance.io-thread-count")
    assert threads.write[-3:] == ("{volume}", "performance.io-thread-count", "{value}") and threads.root
    by_hand = next(knob for knob in of("fuse.glusterfs").values() if knob.by_hand)
    assert (by_hand.read, by_hand.write, by_hand.cluster) == ((), (), ()) and by_hand.source == threads.source


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"threads"', '"threads', "line 4"),
        ("least = 1", "leest = 1", "leest"),
        ('source = "https://example.org/"\n\n', "\n", "source"),
        ('[[knob]]\nname = "threads"', '[[nob]]\nname = "threads"', "nob"),
    ],
)
def test_an_entry_with_an_invalid_or_missing_key_is_named(old: str, new: str, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        load(GOOD.replace(old, new, 1), "any.toml")
    assert caught.value.where.startswith("any.toml") and says in caught.value.why


@pytest.mark.parametrize("knob", catalogue(), ids=lambda knob: knob.name)
def test_every_knob_of_the_catalogue_is_consistent(knob: Knob) -> None:
    assert knob.kind in get_args(Kind) and knob.where in get_args(Where) and knob.answer in get_args(Answer)
    assert knob.counterpart in ("", *COUNTERPARTS) and re.fullmatch(r"[A-Za-z0-9_.:*-]+", knob.name)
    assert knob.meaning and knob.source.startswith("https://")
    assert sum(map(bool, (knob.file, knob.read, knob.by_hand))) == 1 and bool(knob.read) == bool(knob.write)
    assert not knob.file or (knob.file.startswith(("/sys/", "/proc/sys/", "/proc/fs/")) and knob.where == "client")
    assert not knob.write or "{value}" in " ".join(knob.write)
    assert bool(knob.unset) == bool(knob.cluster) == (knob.answer in ("ceph config dump", "gluster volume info"))
    names = re.findall(r"\{(\w*)\}", " ".join((knob.file, *knob.read, *knob.write, *knob.unset, *knob.in_force)))
    assert set(names) <= {*PLACEHOLDERS, "value", "place"}
    assert not knob.field or re.compile(knob.field).groups == 1
    assert bool(knob.choices) == (knob.kind == "choice")
    numeric = knob.kind in ("integer", "number", "bytes")
    assert numeric or (knob.least is None and knob.most is None)
    assert knob.least is None or knob.most is None or knob.least <= knob.most
    assert knob.not_from is None or len(knob.not_from) == 2
    assert [other.name for other in catalogue()].count(knob.name) == 1


def test_an_ambiguous_name_is_refused_with_the_full_names() -> None:
    with pytest.raises(BadInputError) as caught:
        find("max_rpcs_in_flight")
    assert "osc.max_rpcs_in_flight" in caught.value.remedy and "mdc.max_rpcs_in_flight" in caught.value.remedy


@given(
    st.sampled_from([knob for knob in catalogue() if knob.kind in ("integer", "bytes")]), st.integers(-(10**12), 10**12)
)
def test_values_are_accepted_only_within_their_range(knob: Knob, value: int) -> None:
    inside = (knob.least is None or value >= knob.least) and (knob.most is None or value <= knob.most)
    if inside:
        assert knob.parse(value) == knob.parse(str(value)) == str(value)
    else:
        with pytest.raises(BadInputError) as caught:
            knob.parse(value)
        assert str(value) in caught.value.what and knob.range_text in caught.value.remedy


@pytest.mark.parametrize(
    ("knob", "values"),
    [
        ("osc.max_rpcs_in_flight", ("", "1.5", "abc", "1 2", "0x10", "nan", "1e400", "--1")),
        ("performance.cache-size", ("", "a b", "a\nb", "x" * 300)),
    ],
)
def test_a_number_must_be_whole_and_a_text_one_word(knob: str, values: tuple[str, ...]) -> None:
    for value in values:
        with pytest.raises(BadInputError):
            find(knob).parse(value)
