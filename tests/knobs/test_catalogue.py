"""The catalogue is whole, and a wrong line in it is named."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.errors import BadInputError
from strakes.knobs.knob import COUNTERPARTS, Knob
from strakes.knobs.loader import catalogue, find, load

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


@pytest.mark.parametrize(
    "file_system", ["lustre", "ceph", "fuse.glusterfs", "fuse.mfs", "beegfs", "gpfs", "cvfs", "nfs", "*"]
)
def test_every_file_system_has_knobs(file_system: str) -> None:
    assert of(file_system)


@pytest.mark.parametrize("file_system", ["lustre", "ceph", "fuse.glusterfs", "beegfs", "gpfs", "cvfs"])
def test_every_parameter_of_stornext_has_a_counterpart(file_system: str) -> None:
    assert {knob.counterpart for knob in of(file_system).values()} >= set(COUNTERPARTS)


def test_good_files_are_read() -> None:
    threads, cache = load(GOOD, "any.toml")
    assert (threads.least, threads.changeable, cache.kind, cache.write) == (
        1,
        True,
        "bytes",
        ("any", "set", "cache={value}"),
    )


def test_what_a_file_says_at_its_top_is_said_for_every_knob_that_does_not_say_otherwise() -> None:
    top = 'root = true\nread = ["any", "get", "{name}"]\nwrite = ["any", "set", "{name}={value}"]\n'
    threads, cache, page, own = load(
        f"""file_systems = ["anyfs"]
{top}where = "cluster"
source = "https://example.org/"

[[knob]]
name = "threads"
meaning = "Threads."
kind = "integer"

[[knob]]
name = "cache"
meaning = "Cache."
kind = "bytes"
root = false

[[knob]]
name = "page"
meaning = "Page."
kind = "bytes"
by_hand = "any format --page SIZE"

[[knob]]
name = "own"
meaning = "Own."
kind = "text"
where = "client"
read = ["other", "get"]
write = ["other", "set", "{{value}}"]
""",
        "any.toml",
    )
    assert (threads.read, threads.write) == (("any", "get", "threads"), ("any", "set", "threads={value}"))
    assert (threads.where, threads.source, threads.root, cache.root) == ("cluster", "https://example.org/", True, False)
    assert (page.read, page.write, page.root) == ((), (), True)
    assert (own.where, own.read, own.write) == ("client", ("other", "get"), ("other", "set", "{value}"))


@pytest.mark.parametrize(
    ("line", "says"), [('where = "somewhere"', "somewhere"), ('name = "all"', "name"), ('read = ["{disk}"]', "{disk}")]
)
def test_a_wrong_line_at_the_top_is_named(line: str, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        load(GOOD.replace("\n\n", f"\n{line}\n\n", 1), "any.toml")
    assert caught.value.where == "any.toml, line 2"
    assert says in f"{caught.value.what} {caught.value.why}" and caught.value.remedy


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('kind = "bytes"', 'kind = "size"', 15, "size"),
        ("least = 1", 'least = "1"', 7, "least"),
        ("least = 1", "leest = 1", 7, "leest"),
        ('source = "https://example.org/"\n\n', "\n", 3, "source"),
        ('file = "/proc/sys/any/threads"', 'file = "/etc/passwd"', 9, "/etc/passwd"),
        ('file = "/proc/sys/any/threads"', 'file = "/sys/{disk}"', 9, "{disk}"),
        ('"cache={value}"', '"cache=1"', 18, "{value}"),
        ('name = "cache"', 'name = "threads"', 13, "threads"),
        ('where = "cluster"', 'where = "somewhere"', 16, "somewhere"),
        ('read = ["any", "get", "cache"]\n', "", 13, "file, read and by_hand"),
        ('kind = "bytes"', 'kind = "choice"', 15, "choices"),
        ('kind = "bytes"', 'kind = "text"\nmost = 5', 15, "most"),
        ('file_systems = ["anyfs"]', 'file_systems = "anyfs"', 1, "file_systems"),
        ('file_systems = ["anyfs"]', 'file_system = ["anyfs"]', 1, "file_system"),
        ('[[knob]]\nname = "cache"', '[[nob]]\nname = "cache"', 12, "nob"),
    ],
)
def test_a_wrong_line_is_named(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        load(GOOD.replace(old, new, 1), "any.toml")
    assert caught.value.where == f"any.toml, line {line}"
    assert says in f"{caught.value.what} {caught.value.why}" and caught.value.remedy


def test_text_that_is_no_toml_is_refused_with_its_line() -> None:
    with pytest.raises(BadInputError, match="line 4"):
        load(GOOD.replace('"threads"', '"threads', 1), "any.toml")


@given(st.data())
def test_no_line_of_the_real_catalogue_can_be_damaged_unseen(data: st.DataObject) -> None:
    place = data.draw(
        st.sampled_from(sorted((files("strakes.knobs") / "catalogue").iterdir(), key=lambda one: one.name))
    )
    lines = place.read_text(encoding="utf-8").splitlines()
    number = data.draw(st.sampled_from([index for index, line in enumerate(lines) if " = " in line]))
    key, _, value = lines[number].partition(" = ")
    lines[number] = f"{key}x = {value}"
    with pytest.raises(BadInputError) as caught:
        load("\n".join(lines), place.name)
    assert caught.value.where == f"{place.name}, line {number + 1}"


def test_names_that_are_almost_right_are_understood_in_the_message() -> None:
    with pytest.raises(BadInputError) as caught:
        find("max_rpcs_in_flight")
    assert "osc.max_rpcs_in_flight" in caught.value.remedy and "mdc.max_rpcs_in_flight" in caught.value.remedy


@given(
    st.sampled_from([knob for knob in catalogue() if knob.kind in ("integer", "bytes")]), st.integers(-(10**12), 10**12)
)
def test_values_are_taken_within_the_range_and_nowhere_else(knob: Knob, value: int) -> None:
    inside = (knob.least is None or value >= knob.least) and (knob.most is None or value <= knob.most)
    if inside:
        assert knob.parse(value) == knob.parse(str(value)) == str(value)
    else:
        with pytest.raises(BadInputError) as caught:
            knob.parse(value)
        assert str(value) in caught.value.what and knob.range_text in caught.value.remedy


@pytest.mark.parametrize("value", ["", "1.5", "abc", "1 2", "0x10", "nan", "1e400", "--1"])
def test_what_is_no_whole_number_is_refused(value: str) -> None:
    with pytest.raises(BadInputError):
        find("osc.max_rpcs_in_flight").parse(value)


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "x" * 300])
def test_words_stay_one_word(value: str) -> None:
    with pytest.raises(BadInputError):
        find("queue.scheduler").parse(value)


def test_sizes_may_have_units() -> None:
    assert find("mds_cache_memory_limit").parse("1GiB") == str(1 << 30)
    assert find("mds_cache_memory_limit").canonical("1073741824") == str(1 << 30)
