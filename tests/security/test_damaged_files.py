"""Every reader of foreign files reads or refuses a good file after random changes, within 10 s of processor time."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT
from strakes.base.errors import StrakesError
from strakes.control.knob_journal import read_journal
from strakes.failover.description import read_description
from strakes.failover.setup import read_plan
from strakes.interop.formats import read_file
from strakes.model.plan_read import plan_from_toml
from strakes.predict.asked import read_stated
from strakes.runs.published import PublishedRun
from strakes.runs.run import Run
from strakes.tuning.accept_needs import needs_from_toml
from strakes.tuning.advise_app import read_app
from strakes.watch.recorded import is_recording, readings
from strakes.watch.replay import Columns, replay

MOMENT_S = 10.0
MOST_BYTES = 1 << 20
Read = Callable[[Path], object]

PIECES = [
    *(b"[", b"{", b'"', b"'", b"\n", b" ", b"\t", b"\0", b"\xff", b"=", b".", b",", b":", b"-", b"e", b"\r\n", b"#"),
    *(b"9" * 30, b"1e999", b"NaN", b"-Infinity", b"inf", b"null", b"[[", b'"""', b"<!--", b"<a>", b"&lt;", b"=cmd()"),
    *("\u202e".encode(), b"\x1b[2J", b"0x", b"1" * 5000, b"true", b"-0", b"1_000", b"1979-05-27T07:32:00Z"),
]


def copies(path: Path, *names: str) -> Path:
    place = path.parent / "copies"
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / name)
    return place


def read_run(path: Path) -> None:
    run = Run(copies(path, "run.json", "environment.json", "cells.jsonl", "visits.jsonl", "events.jsonl"))
    for part in ("manifest", "environment", "cells", "visits", "events"):
        with suppress(StrakesError):
            getattr(run, part)


def read_cluster(path: Path) -> object:
    return read_plan(copies(path, "etc/corosync/corosync.conf", "etc/drbd.d/r0.res", "pacemaker/cib.xml"))


def texts(pattern: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(ROOT.glob(pattern))]


CLUSTER = [
    b"totem {\n version: 2\n transport: knet\n}\nnodelist {\n node {\n  ring0_addr: 10.0.0.1\n  nodeid: 1\n }\n}\n",
    b'resource r0 {\n device /dev/drbd0;\n on a { disk "/dev/sda"; address 10.0.0.1:7788; }\n}\n',
    b'<cib><configuration><crm_config/><resources><primitive id="a" class="ocf" type="x"/></resources></configuration></cib>',
]
RUN = [
    b'{"schema": 1, "id": "x", "kind": "study", "name": "n", "target": "/x", "options": {}, "status": "complete"}\n',
    b'{"visit": 1, "cell": "a", "samples": [{"phase": "write", "bytes": 1, "elapsed_s": 1.0}]}\n{"visit": 2}\n',
    b'{"event": "dropped", "cell": "a", "reason": "no time"}\n{"event": "description", "description": {}, "unlike": []}\n',
]
JOURNAL = (
    b'{"is": "journal", "format": 1, "owner": {"host": "h", "boot": "b", "namespace": "n", "pid": 1, "started": 2}, '
    b'"target": "/x", "command": ["strakes"], "created_unix_s": 1.5}\n'
    b'{"is": "will", "number": 1, "place": {"knob": "k", "name": "k", "file": "/f"}, "before": "1", "wanted": "2"}\n'
    b'{"is": "did", "number": 1, "effective": "2"}\n{"is": "settled", "number": 1, "outcome": "restored", "found": "1"}\n'
)
RECORDING = (
    b"### 1.5\nmdt.a-MDT0000.md_stats=\nsnapshot_time 1.5 secs.nsecs\nopen 12 samples [reqs]\nclose 3 samples [usecs] 1 9 12 40\n"
    b"### 2.5\nmdt.a-MDT0000.job_stats=\njob_stats:\n- job_id: cp.0\n  snapshot_time: 2\n"
    b"  open: { samples: 1, unit: usecs, min: 1, max: 2, sum: 3, sumsq: 4 }\n   8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"
)
# Each reader with good files.
READERS: dict[str, tuple[Read, list[bytes]]] = {
    "result": (read_file, texts("tests/interop/samples/*")),
    "plan": (lambda path: plan_from_toml(path, 1), texts("examples/*.toml")),
    "application": (read_app, texts("examples/apps/*.toml")),
    "needs": (needs_from_toml, texts("examples/needs-s3.toml")),
    "description": (read_description, [*texts("examples/failover/*.toml"), *texts("examples/tianhe2.toml")]),
    "limits": (read_stated, [b'[limits]\nnetwork = "10 GB/s"\n[limits.servers]\nnumber = 4\n']),
    "run": (read_run, RUN),
    "journal": (read_journal, [JOURNAL]),
    "series": (
        lambda path: replay(path, Columns("time", "value")),
        [b"time,value,host\n" + b"".join(b"%d,%d.5,a\n" % (at * 60, at % 7) for at in range(200))],
    ),
    "recording": (lambda path: is_recording(path) and list(readings([path])), [RECORDING]),
    "published run": (
        lambda path: PublishedRun(path).manifest,
        [b'{"schema": 1, "run": {"id": "x"}, "visits": [], "cells": [], "events": []}'],
    ),
    "cluster": (read_cluster, CLUSTER),
}


@st.composite
def damaged(draw: st.DrawFn, files: list[bytes]) -> bytes:
    text, other = draw(st.sampled_from(files)), draw(st.sampled_from(files))
    for _ in range(draw(st.sampled_from([1, 1, 2, 4, 16]))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.sampled_from([0, 1, 2, 8, 64, 1000])))
        start = draw(st.integers(0, len(other)))
        # A regular expression that backtracks is slow on many repetitions of a few bytes.
        few = text[at : at + draw(st.integers(1, 4))]
        piece = draw(
            st.sampled_from([b"", draw(st.sampled_from(PIECES)), text[at:end], other[start : start + 64], few])
        )
        text = text[:at] + piece * draw(st.sampled_from([1, 1, 2, 100, 20_000])) + text[end:]
    return text[:MOST_BYTES]


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_a_moment(kind: str, data: st.DataObject) -> None:
    read, files = READERS[kind]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "file"
        path.write_bytes(data.draw(damaged(files)))
        began = time.process_time()
        with suppress(StrakesError):
            read(path)
        assert time.process_time() - began < MOMENT_S
