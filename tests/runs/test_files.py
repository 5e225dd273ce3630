from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.control.knob_journal import KnobJournal
from strakes.runs.store import Store
from strakes.runs.store_files import AppendFile, json_lines, read_json_lines, store_error, whole_length, write_json

rows = st.lists(
    st.dictionaries(
        st.text(max_size=5), st.integers() | st.text(max_size=10) | st.lists(st.booleans(), max_size=3), max_size=4
    ),
    max_size=6,
)


def test_a_read_only_store_is_not_to_be_replaced_by_another() -> None:
    assert "Remount" in store_error(OSError(errno.EROFS, "read-only"), Path("x")).remedy
    assert store_error(OSError(errno.EACCES, "denied"), Path("x")).remedy.startswith("Set STRAKES_STORE")


@settings(deadline=None)
@given(rows, st.data())
def test_a_crash_at_any_byte_loses_only_the_last_row(written: list[dict[str, object]], data: st.DataObject) -> None:
    lines = [json_lines([row]).encode() for row in written]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    survivors = 0
    while sum(map(len, lines[: survivors + 1])) <= cut and survivors < len(lines):
        survivors += 1
    assert whole_length(whole[:cut]) == sum(map(len, lines[:survivors]))


@pytest.mark.parametrize("torn", [b'{"vis', bytes(50) + b"\n"], ids=["half", "zeros of a power cut"])
def test_a_torn_last_line_is_ignored_and_replaced_by_the_next_row(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "visits.jsonl"
    path.write_bytes(b'{"visit":1}\n{"visit":2}\n' + torn)
    assert [row["visit"] for row in read_json_lines(path)] == [1, 2]
    file = AppendFile(path, durable=True)
    file.drop_torn_line()
    file.append({"visit": 3})
    file.close()
    assert path.read_bytes() == b'{"visit":1}\n{"visit":2}\n{"visit":3}\n'


def test_damage_in_the_middle_is_named_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "visits.jsonl"
    path.write_bytes(b'{"visit":1}\nrubbish\n{"visit":3}\n')
    with pytest.raises(BadInputError, match="damaged") as caught:
        list(read_json_lines(path))
    assert "line 2" in caught.value.why and caught.value.where == str(path)


def test_an_interrupt_in_the_middle_of_a_row_leaves_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "visits.jsonl"
    file = AppendFile(path, durable=True)
    write = os.write

    def write_half(descriptor: int, data: bytes) -> int:
        write(descriptor, data[: len(data) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_half)
        with pytest.raises(KeyboardInterrupt):
            file.append({"visit": 1})
    file.append({"visit": 2})
    file.close()
    assert list(read_json_lines(path)) == [{"visit": 2}]


def test_a_document_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"status": "running"})
    before = path.stat().st_ino
    write_json(path, {"status": "complete"})
    assert json.loads(path.read_text()) == {"status": "complete"} and path.stat().st_ino != before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


@pytest.fixture
def umask_of_most() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def kept(root: Path) -> None:
    with Store(root).create("study", "x", Path("/proc"), {"fingerprint": "f"}, {}) as writer:
        writer.finish("complete")
    Store(root).runs()
    KnobJournal.begin(root, "/x", ["strakes"]).release()


@pytest.mark.usefixtures("umask_of_most")
def test_only_its_user_can_read_the_store(tmp_path: Path) -> None:
    root = tmp_path / "new" / "store"
    kept(root)
    assert {path.is_dir() for path in root.rglob("*")} == {True, False}
    assert [path for path in (root, *root.rglob("*")) if path.stat().st_mode & 0o077] == []
