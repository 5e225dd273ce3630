"""io_uring with a kernel submission thread, and refusal of completion polling on a file system without it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.base.units import KIB
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.targets.workspace import Workspace

WRITE = TransferPhase(
    "w", "write", "file-per-process", "segmented", 4 * KIB, 64 * KIB, segments=4, backend="uring", queue_depth=8
)


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    with LocalEngine() as engine:
        if "uring" not in engine.start().backends:
            pytest.skip("the engine, or the kernel, is without io_uring")
        yield engine


def test_a_file_system_without_polling_is_named_with_what_to_do(engine: LocalEngine) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        try:
            os.close(os.open(Path(memory) / "direct", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
        except OSError:
            pytest.skip("tmpfs of this kernel has no O_DIRECT")
        with Workspace.create(Path(memory), "polled") as workspace:
            phase = replace(WRITE, direct=True, iopoll=True)
            result = engine.run(Plan(1, (phase,)), workspace.path, "p", limit_s=60)
    assert result.ended == "failed"
    (error,) = result.errors
    assert (error.errno, error.why) == ("EOPNOTSUPP", "Operation not supported")
    assert "leave out iopoll" in error.remedy
