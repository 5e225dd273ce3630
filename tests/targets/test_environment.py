from __future__ import annotations

import json
import os
from pathlib import Path

from strakes.base.version import __version__
from strakes.targets.calls import mount_of
from strakes.targets.target import capture


def test_the_environment_of_a_measurement_is_captured(tmp_path: Path) -> None:
    captured = capture(mount_of(tmp_path))
    assert captured["kernel"] == os.uname().release
    assert captured["host"] == os.uname().nodename
    assert captured["distribution"] and captured["cpu_model"]
    assert 1 <= captured["cpus"] <= captured["cpus_of_machine"]
    assert 0 < captured["memory_available_bytes"] <= captured["memory_bytes"]
    assert captured["strakes"] == __version__
    assert captured["python"].startswith("3.")
    assert len(captured["load_average"]) == 3
    assert json.loads(json.dumps(captured)) == captured
