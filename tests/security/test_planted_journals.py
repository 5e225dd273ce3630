"""Journals are acted on with the rights of their user, so a journal that another user could have planted is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.control import drill_journal as drills
from strakes.control.drill_undo import RunCommand
from strakes.control.knob_journal import KnobJournal, read_journal

OTHER = 65534


def of_a_drill(store: Path) -> Path:
    return drills.announce(store, "a fault", RunCommand(("touch", str(store / "ran"))))


def of_knobs(store: Path) -> Path:
    journal = KnobJournal.begin(store, "/target", ["strakes"])
    journal.release()
    return journal.path


KINDS = ("symbolic link", "hard link", "file of another", "directory of another", "file that others can write")


def planted(path: Path, kind: str) -> None:
    """Change a valid journal so that another user could have planted it."""
    elsewhere = path.parent.parent / "copy"
    match kind:
        case "symbolic link":
            path.rename(elsewhere)
            path.symlink_to(elsewhere)
        case "hard link":
            os.link(path, elsewhere)
        case "file of another":
            os.chown(path, OTHER, OTHER)
        case "directory of another":
            os.chown(path.parent, OTHER, OTHER)
        case "file that others can write":
            path.chmod(0o666)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("make", "read"), [(of_a_drill, drills.put_right), (of_knobs, read_journal)])
def test_a_journal_that_others_could_have_planted_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], read: Callable[[Path], object], kind: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    path = make(tmp_path)
    planted(path, kind)
    with pytest.raises(BadInputError, match="belongs to another user"):
        read(path)
