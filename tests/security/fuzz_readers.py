"""Fuzzing of the readers of foreign files: each must accept or refuse a mutated file within 10 s of processor time.

By hand, in ``tests``: ``python -m security.fuzz_readers SECONDS [SEED]``. Each failing file is kept in a temporary
directory, under its seed; its path is printed.
"""

from __future__ import annotations

import faulthandler
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from strakes.accept.needs import needs_from_toml
from strakes.advise.app import read_app
from strakes.errors import StrakesError
from strakes.failover.description import read_description
from strakes.failover.setup import read_plan
from strakes.interop.formats import read_file
from strakes.knobs.journal import read_journal
from strakes.plan.toml import plan_from_toml
from strakes.predict.asked import read_stated
from strakes.store.published import PublishedRun
from strakes.store.run import Run
from strakes.watch.recorded import is_recording, readings
from strakes.watch.replay import Columns, replay

ROOT = Path(__file__).parents[2]
MOMENT_S = 10.0
MEMORY_BYTES = 4 << 30
Read = Callable[[Path], object]

_PIECES = [
    *(b"[", b"{", b'"', b"'", b"\n", b" ", b"\t", b"\0", b"\xff", b"=", b".", b",", b":", b"-", b"e", b"\r\n", b"#"),
    *(b"9" * 30, b"1e999", b"NaN", b"-Infinity", b"inf", b"null", b"[[", b'"""', b"<!--", b"<a>", b"&lt;", b"=cmd()"),
    *("\u202e".encode(), b"\x1b[2J", b"0x", b"1" * 5000, b"true", b"-0", b"1_000", b"1979-05-27T07:32:00Z"),
]


def mutate(draw: random.Random, text: bytes, other: bytes) -> bytes:
    """Return the text after 1 to 16 random changes, cut to 1 MiB; ``other`` is a source of insertions."""
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at = draw.randrange(len(text) + 1)
        end = min(len(text), at + draw.choice([1, 2, 8, 64, 1000]))
        piece = draw.choice(_PIECES)
        match draw.randrange(9):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + piece + text[at:]
            case 2:
                text = text[:at] + piece + text[end:]
            case 3:
                text = text[:at] + text[at:end] * draw.choice([2, 3, 100]) + text[end:]
            case 4:
                text = text[:at] + piece * draw.choice([10, 1000, 20_000]) + text[at:]
            case 5:
                start = draw.randrange(len(other) + 1)
                text = text[:at] + other[start : start + end - at] + text[end:]
            case 6:
                lines = text.split(b"\n")
                draw.shuffle(lines)
                text = b"\n".join(lines)
            case 7 if at < len(text):
                text = text[:at] + bytes([text[at] ^ 1 << draw.randrange(8)]) + text[at + 1 :]
            case 8:
                # Repeating a few bytes of a valid file exposes slow regular expressions.
                text = text[:at] + text[at : at + draw.randint(1, 4)] * draw.choice([1000, 20_000, 100_000]) + text[at:]
    return text[: 1 << 20]


def _run(path: Path) -> object:
    """Read each part of a stored run whose files are all copies of ``path``."""
    place = path.parent / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("run.json", "environment.json", "cells.jsonl", "visits.jsonl", "events.jsonl"):
        shutil.copy(path, place / name)
    for part in ("manifest", "environment", "cells", "visits", "events"):
        try:
            getattr(Run(place), part)
        except StrakesError:
            continue
    return None


def _replay(path: Path) -> object:
    return replay(path, Columns("time", "value"))


def _watch(path: Path) -> object:
    return [] if not is_recording(path) else list(readings([path]))


def _published(path: Path) -> object:
    return PublishedRun(path).manifest


def _pair(path: Path) -> object:
    """Read a cluster configuration whose files are all copies of ``path``."""
    place = path.parent / "pair"
    shutil.rmtree(place, ignore_errors=True)
    text = path.read_bytes()
    for name in ("etc/corosync/corosync.conf", "etc/drbd.d/r0.res", "pacemaker/cib.xml"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(text)
    return read_plan(place)


def corpus() -> list[tuple[Read, list[bytes]]]:
    """Return the readers, each with valid files."""
    pairs = [*(ROOT / "examples/failover").glob("*.toml"), ROOT / "examples/tianhe2.toml"]
    cluster = [
        b"totem {\n version: 2\n transport: knet\n}\nnodelist {\n node {\n  ring0_addr: 10.0.0.1\n  nodeid: 1\n }\n}\n",
        b'resource r0 {\n device /dev/drbd0;\n on a { disk "/dev/sda"; address 10.0.0.1:7788; }\n}\n',
        b'<cib><configuration><crm_config/><resources><primitive id="a" class="ocf" type="x"/></resources></configuration></cib>',
    ]
    return [
        (read_file, [path.read_bytes() for path in sorted((ROOT / "tests/interop/samples").iterdir())]),
        (lambda path: plan_from_toml(path, 1), [path.read_bytes() for path in (ROOT / "examples").glob("*.toml")]),
        (read_app, [path.read_bytes() for path in (ROOT / "examples/apps").glob("*.toml")]),
        (needs_from_toml, [(ROOT / "examples/needs-s3.toml").read_bytes()]),
        (read_description, [path.read_bytes() for path in pairs]),
        (read_stated, [b'[limits]\nnetwork = "10 GB/s"\n[limits.servers]\nnumber = 4\n']),
        (_run, _STORE),
        (read_journal, [_JOURNAL]),
        (_replay, [b"time,value,host\n" + b"".join(b"%d,%d.5,a\n" % (at * 60, at % 7) for at in range(200))]),
        (_watch, _RECORDINGS),
        (_published, [b'{"schema": 1, "run": {"id": "x"}, "visits": [], "cells": [], "events": []}']),
        (_pair, cluster),
    ]


_STORE = [
    b'{"schema": 1, "id": "x", "kind": "study", "name": "n", "target": "/x", "options": {}, "status": "complete"}\n',
    b'{"visit": 1, "cell": "a", "samples": [{"phase": "write", "bytes": 1, "elapsed_s": 1.0}]}\n{"visit": 2}\n',
    b'{"event": "dropped", "cell": "a", "reason": "no time"}\n{"event": "description", "description": {}, "unlike": []}\n',
]
_JOURNAL = (
    b'{"is": "journal", "format": 1, "owner": {"host": "h", "boot": "b", "namespace": "n", "pid": 1, "started": 2}, '
    b'"target": "/x", "command": ["strakes"], "created_unix_s": 1.5}\n'
    b'{"is": "will", "number": 1, "place": {"knob": "k", "name": "k", "file": "/f"}, "before": "1", "wanted": "2"}\n'
    b'{"is": "did", "number": 1, "effective": "2"}\n{"is": "settled", "number": 1, "outcome": "restored", "found": "1"}\n'
)
_RECORDINGS = [
    (
        b"### 1.5\nmdt.a-MDT0000.md_stats=\nsnapshot_time 1.5 secs.nsecs\nopen 12 samples [reqs]\nclose 3 samples [usecs] 1 9 12 40\n"
        b"### 2.5\nmdt.a-MDT0000.job_stats=\njob_stats:\n- job_id: cp.0\n  snapshot_time: 2\n"
        b"  open: { samples: 1, unit: usecs, min: 1, max: 2, sum: 3, sumsq: 4 }\n"
        b"   8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"
    ),
]


class SlowError(Exception):
    """A reader exceeded its time limit."""


def _too_slow(number: int, frame: object) -> None:
    raise SlowError(f"no answer in {MOMENT_S} s")


def try_one(place: Path, readers: list[tuple[Read, list[bytes]]], seed: int) -> str:
    """Let the reader that the seed draws read a mutated file; return the traceback of a crash, or ""."""
    draw = random.Random(seed)
    read, files = draw.choice(readers)
    path = place / "file"
    path.write_bytes(mutate(draw, draw.choice(files), draw.choice(files)))
    signal.setitimer(signal.ITIMER_VIRTUAL, MOMENT_S)
    try:
        read(path)
    except StrakesError:
        pass
    except Exception:  # noqa: BLE001 - any other exception is a finding
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def main(seconds: float, first: int) -> int:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGVTALRM, _too_slow)
    readers, until, seed, failed = corpus(), time.monotonic() + seconds, first, 0
    place = Path(tempfile.mkdtemp(prefix="strakes-fuzz-"))
    while time.monotonic() < until:
        if wrong := try_one(place, readers, seed):
            failed += 1
            shutil.copy(place / "file", place / f"failed-{seed}")
            print(seed, place / f"failed-{seed}", wrong, flush=True)
        seed += 1
    print(f"{seed - first} files, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
