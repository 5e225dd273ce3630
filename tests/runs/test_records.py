"""Records of runs survive writing and reading, and invalid records are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.model.cell import Cell
from strakes.model.record import from_record, to_record
from strakes.model.sample import Sample
from strakes.runs.records import Visit, event_from_record, event_to_record
from strakes.runs.store import Store

RUNS = sorted(Path(__file__).with_name("stored").glob("*.json.gz"))


def test_unknown_fields_are_ignored() -> None:
    assert from_record(Sample, {"name": "write", "colour": "red"}) == Sample("write")


def test_an_event_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="eclipse"):
        event_from_record({"event": "eclipse", "of": "the sun"})


def test_only_known_values_are_written() -> None:
    assert to_record(Sample("write", bytes_per_s=5.0)) == {"name": "write", "bytes_per_s": 5.0}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_stored_records_do_not_change_when_written_again(path: Path) -> None:
    run = json.loads(gzip.decompress(path.read_bytes()))
    for kind, records in ((Cell, run["cells"]), (Visit, run["visits"])):
        for record in records:
            value = from_record(kind, record)
            assert from_record(kind, json.loads(json.dumps(to_record(value)))) == value
    assert [event_to_record(event_from_record(record)) for record in run["events"]] == run["events"]


def test_an_invalid_row_is_named(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with Store(tmp_path / "store").create("study", "s", target, {}, {}) as writer:
        (writer.path / "visits.jsonl").write_text('{"visit": "first"}\n')
    with pytest.raises(BadInputError, match="damaged") as caught:
        _ = Store(tmp_path / "store").open("latest").visits
    assert "record 1" in caught.value.why
