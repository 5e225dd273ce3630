"""A stored run opened in a notebook: its tables hold the figures of the report."""

from __future__ import annotations

import gzip
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import strakes
from strakes.api import OpenedRun
from strakes.base.errors import BadInputError, EnvironmentLacksError

EXPORT = Path(__file__).parents[1] / "runs" / "stored" / "access-patterns.json.gz"
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "python.md"


@pytest.fixture
def run() -> OpenedRun:
    return strakes.open(str(EXPORT))


def test_the_table_of_cells_has_a_row_per_cell_and_a_column_per_setting(run: OpenedRun) -> None:
    frame = run.cells.to_pandas()
    assert list(frame["id"]) == [cell.id for cell in run.portrait.cells]
    assert list(frame["median"]) == [cell.median for cell in run.portrait.cells]
    assert {name for cell in run.portrait.cells for name in cell.settings} <= set(frame.columns)
    assert "settings" not in frame.columns


def test_a_table_can_be_indexed_and_counted(run: OpenedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.cells[0] == run.portrait.cells[0]
    assert len(run.findings) == len(run.portrait.findings) == len(run.findings.to_dicts())
    assert run.id in repr(run) and "rows" in repr(run.cells)
    monkeypatch.chdir(tmp_path)
    Path("latest").write_bytes(gzip.decompress(EXPORT.read_bytes()).replace(b'"target":"/', rb'"target":"\u001b[2J/'))
    assert "[2J/" in (shown := repr(strakes.open("./latest"))) and shown.isprintable()
    with pytest.raises(BadInputError):
        strakes.open("latest")


def test_findings_carry_their_interval_as_columns(run: OpenedRun) -> None:
    for finding, row in zip(run.findings, run.findings.to_dicts(), strict=True):
        interval = (finding.interval.low, finding.interval.of) if finding.interval else (None, None)
        assert (row.get("low"), row.get("of")) == interval


def test_samples_are_the_values_behind_the_estimates(run: OpenedRun) -> None:
    samples = run.samples.to_pandas()
    measured = samples[samples["purpose"] == "measure"]
    cell = next(cell for cell in run.cells if cell.runs > 1)
    assert sorted(measured[measured["cell"] == cell.id]["value"]) == sorted(cell.values)


def test_without_pandas_the_error_names_the_install_command(run: OpenedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(EnvironmentLacksError, match="pip install pandas"):
        run.cells.to_pandas()


def test_the_notebook_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [text.partition("```")[0] for text in GUIDE.read_text().split("```python\n")[1:]]
    assert len(blocks) >= 3
    text = [block.replace('strakes.open("latest")', f"strakes.open({str(EXPORT)!r})") for block in blocks]
    new = nbformat.v4
    cells = [new.new_code_cell(source) for source in text]  # type: ignore[no-untyped-call]
    notebook = new.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.outputs if output.output_type == "execute_result"]
    assert any("median" in output.data["text/plain"] for output in shown)
