"""Configurations of IO500, DLIO, IOR and mdtest on a real CephFS, and the import of the tools' own results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, StrakesRunner
from lab.running import need, own_labs

pytestmark = [pytest.mark.lab, pytest.mark.more]

IO500_PHASES = (
    "ior-easy-write",
    "mdtest-easy-write",
    "ior-hard-write",
    "mdtest-hard-write",
    "find",
    "ior-easy-read",
    "mdtest-easy-stat",
    "ior-hard-read",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
)


@pytest.fixture(scope="module")
def mount() -> Iterator[Path]:
    need("ceph")
    with own_labs() as labs:
        yield labs.up(
            "ceph", "--osds", "1", "--mds", "1", "--standby", "0", "--store", "memstore", "--osd-size", "3GiB"
        )


@pytest.fixture
def data(mount: Path) -> Iterator[Path]:
    """Create a directory on the mount, and check afterwards that it is empty."""
    directory = mount / "data"
    directory.mkdir()
    yield directory
    assert list(directory.iterdir()) == []
    directory.rmdir()


def findings_of(strakes: StrakesRunner, place: Path, *words: str | Path) -> dict[str, Any]:
    """Run a tool's configuration or command line with a budget of 1 s and return the findings document."""
    out = place / "findings.json"
    done = strakes("run", "-n", "2", "--budget", "1s", "--json", out, *words, timeout_s=400)
    assert done.returncode == 0, done.stderr
    findings: dict[str, Any] = json.loads(out.read_text())
    assert "ceph" in findings["target"]["file_system"]
    return findings


def imported_cells(strakes: StrakesRunner, output: Path) -> list[str]:
    """Import the output of a tool and return the ids of the cells with a positive median."""
    imported = strakes("import", output)
    assert imported.returncode == 0, imported.stderr
    run = re.search(r"\d{8}-\d{6}-[\w-]+", imported.stdout)
    assert run is not None, imported.stdout
    report = strakes("report", run[0], "--json", "-")
    assert report.returncode == 0, report.stderr
    return [cell["id"] for cell in json.loads(report.stdout)["cells"] if cell["median"] > 0]


def small_io500(directory: Path, data: Path) -> Path:
    """Write the example configuration, reduced as far as all phases still run, and return its path."""
    text = (ROOT / "examples" / "io500-small.ini").read_text()
    for key, value in (("datadir", data), ("blockSize", "4m"), ("n", 100), ("segmentCount", 50)):
        text, changed = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.M)
        assert changed, key
    ini = directory / "config.ini"
    ini.write_text(text)
    return ini


def test_an_io500_configuration_runs_all_phases_on_cephfs_and_its_exported_summary_can_be_imported(
    tmp_path: Path, data: Path, strakes: StrakesRunner
) -> None:
    findings = findings_of(strakes, tmp_path, "io500", small_io500(tmp_path, data))
    cells = {cell["id"].removeprefix("plan:"): cell for cell in findings["cells"]}
    assert {name for name in IO500_PHASES if cells.get(name, {"median": 0})["median"] > 0} == set(IO500_PHASES)

    summary = tmp_path / "result_summary.txt"
    done = strakes("export", "--format", "io500")
    assert done.returncode == 0, done.stderr
    summary.write_text(done.stdout)
    cells_again = " ".join(imported_cells(strakes, summary))
    assert [name for name in IO500_PHASES if name not in cells_again] == []


@pytest.mark.parametrize("name", ["unet3d", "resnet50", "cosmoflow"])
def test_the_examples_of_dlio_train_on_cephfs(tmp_path: Path, data: Path, strakes: StrakesRunner, name: str) -> None:
    text = (ROOT / "examples" / f"dlio-{name}.yaml").read_text()
    text = re.sub(r"^( +(?:data|checkpoint)_folder: ).*$", rf"\g<1>{data}", text, flags=re.M)
    configuration = tmp_path / "config.yaml"
    configuration.write_text(text)
    findings = findings_of(strakes, tmp_path, "dlio", configuration)
    cells = {cell["id"].removeprefix("plan:"): cell for cell in findings["cells"]}
    assert {"generate", "epoch-1", "epoch-2"} <= set(cells)
    assert 0 < cells["epoch-1:utilisation"]["median"] <= 100


IOR = ["-t", "256k", "-b", "4m", "-F", "-o", "DATA/file"]
MDTEST = ["-F", "-u", "-n", "100", "-d", "DATA/tree"]


@pytest.mark.parametrize(
    ("tool", "words", "names"),
    [
        ("ior", IOR, {"write", "read"}),
        ("mdtest", MDTEST, {"file-creation", "file-stat", "file-read", "file-removal"}),
    ],
)
def test_results_of_ior_and_mdtest_on_cephfs_are_imported_with_the_phases_that_strakes_measures(
    tmp_path: Path, data: Path, strakes: StrakesRunner, tool: str, words: list[str], names: set[str]
) -> None:
    program = shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not on PATH")
    placed = [word.replace("DATA", str(data)) for word in words]
    theirs = subprocess.run(
        # A single task, which every MPI starts without a launcher.
        [program, *placed],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    for left in data.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    output = tmp_path / "theirs.txt"
    output.write_text(theirs.stdout)
    cells = " ".join(imported_cells(strakes, output))
    ours = {cell["id"].removeprefix("plan:") for cell in findings_of(strakes, tmp_path, tool, *placed)["cells"]}
    assert names <= ours
    assert [name for name in names if name not in cells] == []
