from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mounts import other_user
from runs.conftest import MakeRun
from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import default_root, make_new_directory
from strakes.model.cell import Cell
from strakes.runs.records import CellDropped, Visit
from strakes.runs.run import FinishedStatus, Run
from strakes.runs.store import Store, ended_in_order
from strakes.runs.writer import RunWriter


def test_the_environment_sets_the_root_of_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("STRAKES_STORE", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_root() == tmp_path / ".local/share/strakes"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_root() == Path("/data/strakes")
    monkeypatch.setenv("STRAKES_STORE", "~/mine")
    assert default_root() == tmp_path / "mine"


def test_a_run_keeps_everything_it_was_given(store: Store, make_run: MakeRun, measured: Path) -> None:
    with make_run() as writer:
        writer.write_cells([Cell("s", "a", {}), Cell("s", "b", {})])
        writer.append_visit(Visit(0, cell="a"))
        writer.append_visit(Visit(1, cell="b"))
        writer.append_event(CellDropped("a", "no time"))
        writer.run.write("findings.json", {"schema": 1})
        writer.finish("complete")
    run = store.open(writer.id)
    assert [cell.key for cell in run.cells] == ["a", "b"] and [visit.cell for visit in run.visits] == ["a", "b"]
    assert run.events == [CellDropped("a", "no time")] and run.findings == {"schema": 1}
    assert run.environment == {"mount": {"file_system": "xfs"}}
    known = [run.manifest[name] for name in ("id", "status", "target")]
    assert known == [writer.id, "complete", str(measured)] and run.manifest["command"][0] == "strakes"


def test_ids_sort_by_time_and_carry_the_name(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = []
    for second, name in enumerate(("Z last", "a")):
        now = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
        monkeypatch.setattr("strakes.runs.store.utc_now", lambda now=now: now)
        with make_run(name) as writer:
            ids.append(writer.id)
    assert re.fullmatch(r"20260101-000000-z-last-[0-9a-f]{4}", ids[0]) and ids == sorted(ids)


def test_runs_of_one_second_are_listed_in_the_order_they_began(make_run: MakeRun, store: Store) -> None:
    ids = []
    for name in "dcba":
        with make_run(name) as writer:
            ids.append(writer.id)
    assert [run.id for run in store.runs()] == ids and store.open("latest").id == ids[-1]
    assert [store.open(f"latest~{before}").id for before in range(4)] == ids[::-1]
    with pytest.raises(BadInputError, match="no run 'latest~4'"):
        store.open("latest~4")
    for unknown in ("latest~", "latest~-1", "latest~x", "latest~1~1"):
        with pytest.raises(BadInputError, match="no run"):
            store.open(unknown)


def test_a_run_is_found_by_the_beginning_of_its_id(make_run: MakeRun, store: Store) -> None:
    with make_run("one") as one, make_run("two") as two:
        pass
    assert store.open(one.id[:-2]).id == one.id and store.open(two.id).id == two.id
    with pytest.raises(BadInputError, match="2 run ids begin with"):
        store.open(one.id[:8])
    for unknown in ("nothing", "", "../none", "."):
        with pytest.raises(BadInputError, match="no run"):
            store.open(unknown)


def test_an_empty_store_is_read_without_being_made(store: Store) -> None:
    assert store.runs() == []
    with pytest.raises(BadInputError, match="no runs yet"):
        store.open("latest")
    assert not store.root.exists()


@pytest.mark.parametrize("place", ["", "deep/er/store", "../measured-store"])
def test_a_store_may_be_inside_the_measured_directory_or_next_to_it(measured: Path, place: str) -> None:
    Store(measured / place).create("survey", "survey", measured, {}, {}).close()
    assert len(Store(measured / place).runs()) == 1


@pytest.mark.parametrize(("root", "why"), [(__file__, "not a directory"), ("/proc/strakes", "cannot be written")])
def test_a_store_that_may_not_be_written_says_what_to_do(measured: Path, root: str, why: str) -> None:
    with pytest.raises(StrakesError, match=why) as caught:
        Store(Path(root)).create("survey", "survey", measured, {}, {})
    assert "STRAKES_STORE" in caught.value.remedy


def test_a_measured_directory_that_is_missing_makes_no_run(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be reached"):
        store.create("survey", "survey", tmp_path / "missing", {}, {})
    assert not store.root.exists()


def test_an_unfinished_run_is_resumed_with_its_cells_and_visits(store: Store, make_run: MakeRun) -> None:
    with make_run() as writer:
        writer.write_cells([Cell("s", "a", {})])
        writer.append_visit(Visit(0))
        writer.finish("interrupted")
    with store.resume("f") as again:
        assert again.id == writer.id and again.run.cells == [Cell("s", "a", {})]
        again.append_visit(Visit(1))
        assert again.run.visits == [Visit(0)] and store.runs()[0].status == "running"
        again.finish("complete")
    run = store.open(writer.id)
    assert [visit.visit for visit in run.visits] == [0, 1] and len(run.manifest["resumed"]) == 1


def test_an_error_of_the_data_of_a_resumed_run_names_the_run(store: Store, make_run: MakeRun) -> None:
    with make_run() as writer:
        writer.write_cells([Cell("s", "a", {})])
        writer.append_visit(Visit(0, cell="a"))
        writer.finish("interrupted")
    with pytest.raises(BadInputError, match="cannot use a stored run"), ended_in_order(store, store.resume("f")):
        raise IndexError
    assert store.runs()[0].status == "failed"


def test_resuming_takes_the_newest_run_with_the_same_fingerprint(store: Store, make_run: MakeRun) -> None:
    for name, fingerprint in (("old", "f"), ("new", "f"), ("other", "g")):
        with make_run(name, fingerprint) as writer:
            writer.finish("failed")
    with store.resume("f") as again:
        assert "new" in again.id


@pytest.mark.parametrize(
    ("status", "fingerprint", "why"),
    [("complete", "f", "complete"), ("interrupted", "g", "no run with this directory and these options")],
)
def test_a_complete_run_or_one_with_other_options_is_not_resumed(
    store: Store, make_run: MakeRun, status: FinishedStatus, fingerprint: str, why: str
) -> None:
    with make_run() as writer:
        writer.finish(status)
    with pytest.raises(BadInputError, match=why) as caught:
        store.resume(fingerprint)
    assert status != "complete" or (writer.id in caught.value.remedy and "Wait" not in caught.value.remedy)


def test_a_run_that_is_still_written_is_not_resumed(store: Store, make_run: MakeRun) -> None:
    with make_run():
        assert store.runs()[0].status == "running"
        with pytest.raises(BadInputError, match=r"another strakes process|still in progress"):
            store.resume("f")


def test_a_run_with_a_damaged_manifest_is_listed_as_damaged(store: Store, make_run: MakeRun) -> None:
    with make_run() as writer:
        pass
    for spoil in (lambda path: path.write_text("{"), lambda path: (path.unlink(), path.symlink_to(path))):
        spoil(writer.path / "run.json")  # It cannot be parsed, and then not even be looked up.
        assert [(run.id, run.status) for run in store.runs()] == [(writer.id, "damaged")]
    with pytest.raises(BadInputError, match="no run with this directory and these options"):
        store.resume("f")


def _fill(writer: RunWriter) -> None:
    for visit in range(1, 10_000):
        writer.append_visit(Visit(visit, given={"text": "x" * 50_000}))


@pytest.mark.parametrize(("most_bytes", "why"), [(1 << 28, "the store is full"), (1 << 18, "has no room for more")])
def test_a_full_store_or_run_ends_the_run_with_an_error(
    tmpfs: Path, measured: Path, most_bytes: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.runs.store_files._MOST_LINES_BYTES", most_bytes)
    store = Store(tmpfs / "store")
    writer = store.create("survey", "survey", measured, {}, {})
    writer.append_visit(Visit(0))
    with writer, pytest.raises(EnvironmentLacksError, match=why) as caught:
        _fill(writer)
    assert caught.value.remedy
    kept = store.open(writer.id).visits
    assert [visit.visit for visit in kept] == list(range(len(kept)))
    assert (writer.path / "visits.jsonl").read_bytes().endswith(b"}\n")


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def test_only_files_of_a_run_are_removed_and_only_from_its_own_directory(store: Store, make_run: MakeRun) -> None:
    writer = make_run()
    writer.path.rename(store.root / "away")
    writer.path.mkdir()
    (writer.path / "run.json").touch()
    store.discard(writer)
    assert (writer.path / "run.json").exists()
    for name in ("", "data"):
        other = make_run()
        (other.path / name).mkdir(exist_ok=True)
        store.discard(other)
        assert other.path.exists() == bool(name) and (not name or os.listdir(other.path) == [name])


def test_a_run_is_written_only_into_its_own_directory(
    store: Store, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_run(fingerprint="g") as other:
        other.finish("interrupted")
    before, own = files(other.path), tmp_path / "own"

    def make_and_exchange(path: Path) -> int:
        made = make_new_directory(path)
        path.rename(own)
        other.path.rename(path)
        return made

    monkeypatch.setattr("strakes.runs.store.make_new_directory", make_and_exchange)
    with make_run() as writer:
        writer.write_cells([Cell("s", "a", {})])
        writer.append_visit(Visit(0, cell="a"))
        writer.run.write("findings.json", {"schema": 1})
        with pytest.raises(EnvironmentLacksError, match=f"the measurements of the run are now in {own}"):
            writer.finish("interrupted")
    assert Run(own).visits == [Visit(0, cell="a")] and Run(own).findings and Run(own).cells
    monkeypatch.setattr(Store, "_newest_unfinished", lambda *_: Run(writer.path))
    for act in (lambda: store.resume("f"), lambda: writer.run.write("findings.json", {})):
        with pytest.raises(BadInputError, match="another run has taken the name of this run"):
            act()
    assert files(writer.path) == before


def test_a_new_run_is_not_begun_in_a_directory_that_takes_its_place(
    store: Store, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir, runs = os.mkdir, store.root / "runs"

    def exchange(name: str, mode: int, *, dir_fd: int) -> None:
        mkdir(name, 0o755 if "-transfer-size-" in name else mode, dir_fd=dir_fd)

    runs.mkdir(parents=True)
    runs.chmod(0o777)
    monkeypatch.setattr(os, "mkdir", exchange)
    with pytest.raises(EnvironmentLacksError, match="another directory has taken the place"):
        make_run()
    runs.chmod(0o755)  # On FAT, all directories have one mode.
    make_run().close()


def test_too_many_visits_and_a_visit_without_a_cell_are_refused(
    store: Store, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.runs.run._MOST_RECORDS", 2)
    with make_run() as writer:
        pass
    for text, why in (("{}\nrubbish\n", "record 1 .*cell"), ('{"cell":"a"}\n' * 3, "more than 2 records")):
        (writer.path / "visits.jsonl").write_text(text)
        with pytest.raises(BadInputError, match=why):
            _ = store.open(writer.id).visits


def test_reading_the_private_runs_of_another_user_is_refused(tmpfs: Path, measured: Path) -> None:
    store = Store(tmpfs / "store")
    with store.create("survey", "survey", measured, {}, {}) as writer:
        writer.append_visit(Visit(0))
        writer.finish("complete")
    with other_user():
        for ask in (store.runs, lambda: store.open("latest").visits):
            with pytest.raises(EnvironmentLacksError, match=r"another user.*strakes export"):
                ask()
    for place in (store.root, writer.path.parent):
        place.chmod(0o755)
    with other_user():
        assert store.runs() == []  # A run that root has stored does not hide the other runs.


def test_names_that_are_not_utf_8_are_kept_as_they_are(store: Store, measured: Path) -> None:
    target = measured / os.fsdecode(b"caf\xe9")
    target.mkdir()
    with store.create("survey", "lone \ud800", target, {}, {}) as writer:
        writer.finish("complete")
    for _ in range(2):
        (run,) = store.runs()
        assert (os.fsencode(run.target), run.name) == (os.fsencode(target), "lone \ud800")
    shutil.rmtree(run.path)
    assert store.runs() == []


def test_concurrent_writers_lose_nothing(store: Store, measured: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from strakes.runs.records import Visit; from strakes.runs.store import Store\n"
        "for number in range(10):\n"
        "    with Store(Path(sys.argv[1])).create('study', f'w{sys.argv[3]}', Path(sys.argv[2]), {}, {}) as writer:\n"
        "        writer.append_visit(Visit(number)); writer.finish('complete')\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(store.root), str(measured), str(number)])
        for number in range(3)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    runs = store.runs()
    assert len(runs) == 30 and {run.status for run in runs} == {"complete"}
