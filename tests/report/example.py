"""The portrait in ``example.json`` has every kind of content, for tests of all forms of the report."""

from __future__ import annotations

import json
from pathlib import Path

from strakes.model.portrait import Portrait
from strakes.model.record import from_record

DOCUMENT = Path(__file__).with_suffix(".json")
HOSTILE_PATH = """/mnt/it's "scratch" & <b>more</b></script><script>alert(1)</script>"""


def example_portrait() -> Portrait:
    return from_record(Portrait, json.loads(DOCUMENT.read_text(encoding="utf-8")))
