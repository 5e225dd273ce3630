"""One plan on several directories, assigned to ranks round-robin: mdtest -d A@B, ior -F -o A/F@B/F, and plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strakes.cli.main import run
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.runs.store import Store
from strakes.survey import choosing
from strakes.targets.workspace import Workspace


def strakes(*words: str) -> int:
    return run(["run", "-q", "--budget", "1s", *words])


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("a", "b", "c")]
    for place in made:
        place.mkdir()
        (place / "theirs").write_text("kept")
    return made


def holds_only_theirs(places: list[Path]) -> bool:
    return all([entry.name for entry in place.iterdir()] == ["theirs"] for place in places)


def test_mdtest_and_ior_use_all_of_their_directories_and_leave_no_files(
    places: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert strakes("-n", "3", "--json", "-", "mdtest", "-n", "20", "-F", "-u", "-d", "@".join(map(str, places))) == 0
    document = json.loads(capsys.readouterr().out)
    assert [further["path"] for further in document["target"]["beside"]] == [str(place) for place in places[1:]]
    assert document["target"]["path"] == str(places[0])
    files = "@".join(str(place / "file") for place in places)
    assert strakes("-n", "4", "ior", "-F", "-t", "64k", "-b", "128k", "-o", files) == 0 and holds_only_theirs(places)
    assert Store().open(Store().runs()[-1].id).manifest["options"]["beside"] == [str(place) for place in places[1:]]


def test_ranks_of_one_directory_share_a_tree(places: list[Path]) -> None:
    assert strakes("-n", "4", "mdtest", "-n", "20", "-z", "1", "-b", "2", "-d", f"{places[0]}@{places[1]}") == 0
    assert holds_only_theirs(places)


def test_several_files_in_one_directory_count_as_one_directory(places: list[Path]) -> None:
    assert strakes("-n", "2", "ior", "-F", "-b", "128k", "-t", "64k", "-o", f"{places[0]}/x@{places[0]}/y") == 0
    assert "beside" not in Store().open(Store().runs()[-1].id).manifest["options"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mdtest -n 20 -N 1 -F -u -d {a}@{b}", "-N makes tasks use files of tasks in another directory"),
        ("ior -F -Z -o {a}/x@{b}/x", "-Z makes tasks use files of tasks in another directory"),
        ("mdtest -n 20 -d {a}@{b}@{c}", "there are 3 directories for only 2 ranks"),
        ("mdtest -n 20 -d {a}@{a}", "given twice"),
        ("mdtest -n 20 -d {a}/new1@{a}/new2", "no such directory"),
        ("ior -F -k -o {a}/x@{b}/x", "one directory only"),
        ("ior -F -o {a}/x@{a}/y@{b}/x", "given twice"),
        ("{plan} {a} {b}", "files that ranks have in common"),
        ("{plan} {a} {a}/missing", "no such directory"),
    ],
)
def test_work_that_needs_a_single_directory_is_refused_and_leaves_no_files(
    places: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    plan = tmp_path / "shared.toml"
    plan.write_text(
        """title = "Shared"
ranks = 2
[[phase]]
kind = "transfer"
name = "write"
operation = "write"
layout = "shared-file"
access = "segmented"
transfer_bytes = 65536
block_bytes = 131072
segments = 1
"""
    )
    a, b, c = places
    words = line.format(a=a, b=b, c=c, plan=plan).split()
    assert strakes(*([] if words[0] == str(plan) else ["-n", "2"]), *words) == 2
    assert said in " ".join(capsys.readouterr().err.split()) and holds_only_theirs(places)


@pytest.mark.parametrize("tight", ["a", "b"])
def test_a_lack_of_space_names_the_directory(
    places: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tight: str
) -> None:
    # The tight directory has only one free inode. The others have enough of everything.
    monkeypatch.setattr(
        choosing, "room_of", lambda _, facts: (1 << 40, 1) if Path(facts["path"]).name == tight else (1 << 30, 1 << 20)
    )
    files = "@".join(str(place / "file") for place in places[:2])
    assert strakes("-n", "2", "ior", "-F", "-b", "128k", "-t", "64k", "-o", files) == 2
    assert f"where: {places['ab'.index(tight)]} why: needs" in " ".join(capsys.readouterr().err.split())
    assert holds_only_theirs(places)


def test_files_of_a_dead_engine_are_removed_from_all_directories(places: list[Path]) -> None:
    write = TransferPhase("write", "write", "file-per-process", "segmented", 4096, 65536)
    plan = Plan(2, (write, MetadataPhase("create", "file-create", directory="unique", items=1_000_000_000)))
    with (
        Workspace.create(places[0], "20260101-000000-several-1a2b") as one,
        Workspace.create(places[1], "20260101-000000-several-1a2b.2") as two,
        LocalEngine() as engine,
    ):
        engine.beside = (two.path,)
        seen: list[bool] = []

        def kill(_progress: object) -> None:
            if not seen:
                seen.append(all(any(space.path.glob("v0/items.*")) for space in (one, two)))
                assert engine._process is not None
                engine._process.stop(0.0)

        result = engine.run(plan, one.path, "v0", 60.0, on_progress=kill)
        assert seen == [True]
        assert result.ended == "died" and result.cleaned
        assert not any(space.path.joinpath("v0").exists() for space in (one, two))
    assert holds_only_theirs(places)


def test_the_directories_of_mdtest_may_share_a_parent_and_contain_blanks(places: list[Path]) -> None:
    new = [places[0] / "new one", places[0] / "other"]
    for place in new:
        place.mkdir()
    assert strakes("-n", "2", "mdtest", "-n", "20", "-F", "-u", "-d", "@".join(map(str, new))) == 0


def test_screen_and_later_commands_name_all_directories(places: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    both = f"{places[0]}@{places[1]}"
    screens = []
    for where in (both, str(places[0])):
        assert strakes("-n", "2", "mdtest", "-n", "20", "-F", "-u", "-d", where) == 0
        screens.append("".join(capsys.readouterr().out.split()))
    assert f"Ranksalternatebetween:{places[0]},{places[1]}(" in screens[0]
    all_of_them = f"{places[0]}, {places[1]}"
    run(["compare", "latest~1", "latest"])
    # Paths longer than the terminal are wrapped, so compare without white space.
    assert f"target:{places[0]},{places[1]}inA,{places[0]}inB" in "".join(capsys.readouterr().out.split())
    assert run(["export", "latest~1", "--format", "openmetrics"]) == 0
    assert f'target="{all_of_them}"' in capsys.readouterr().out and run(["runs", "--json"]) == 0
    assert [listed["target"] for listed in json.loads(capsys.readouterr().out)][-2:] == [all_of_them, str(places[0])]
