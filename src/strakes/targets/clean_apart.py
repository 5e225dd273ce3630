"""Sweeping up in a process that can be given up.

On a file system whose servers died, opening a directory may never end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import strakes.errors as errors
from strakes.errors import StrakesError
from strakes.processes import python_module
from strakes.targets.calls import UnansweredError
from strakes.targets.clean import CleanReport, clean
from strakes.targets.keeper import STUCK_S, wait_while_at_work
from strakes.targets.registry import detect_by_name
from strakes.targets.removal import Left

_KEPT = ("what", "where", "why", "remedy")


def clean_apart(directory: Path, *, dry_run: bool = False, force: bool = False) -> CleanReport:
    """Run :func:`clean` in a child process. Also raises UnansweredError if the file system does not answer."""
    flags = [word for word, given in (("--dry-run", dry_run), ("--force", force)) if given]
    with os.fdopen(os.memfd_create("report"), "r+b") as output:
        sweeper = subprocess.Popen(
            python_module(__name__, os.fsencode(directory).hex(), *flags),
            stdin=subprocess.DEVNULL,
            stdout=output,
            # Nothing of ours may hold open what a shell reads to its end.
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            ended = wait_while_at_work(sweeper)
        except BaseException:
            sweeper.kill()
            raise
        if not ended:
            raise _unanswered(directory)
        output.seek(0)
        answer = output.read()
    if sweeper.returncode != 0 or not answer:
        raise errors.MeasurementError(
            "cleaning up ended early", where=str(directory), why=f"exit status {sweeper.returncode}"
        )
    return _read(json.loads(answer))


def _unanswered(directory: Path) -> UnansweredError:
    error = UnansweredError(
        "the file system does not answer",
        where=str(directory),
        why=f"cleaning up has waited for it for {STUCK_S:g} s",
        remedy="Try again when its servers answer.",
    )
    return error.naming(detect_by_name(directory).trouble())


def _read(document: dict[str, Any]) -> CleanReport:
    if "error" in document:
        kind = getattr(errors, document["kind"], errors.MeasurementError)
        what, *others = (document["error"][name] for name in _KEPT)
        raise kind(what, **dict(zip(_KEPT[1:], others, strict=True)))
    removed = tuple(os.fsdecode(bytes.fromhex(path)) for path in document["removed"])
    lists = (document[name] for name in ("skipped_live", "left", "ignored"))
    return CleanReport(
        removed,
        *(tuple(Left(os.fsdecode(bytes.fromhex(each["path"])), each["why"]) for each in kept) for kept in lists),
    )


def main(words: list[str]) -> None:
    """Clean, and write the report, or the error, to standard output; names as hexadecimal digits."""
    directory = Path(os.fsdecode(bytes.fromhex(words[0])))
    try:
        report = clean(directory, dry_run="--dry-run" in words, force="--force" in words)
    except StrakesError as error:
        kind = next(base.__name__ for base in type(error).__mro__ if hasattr(errors, base.__name__))
        document: dict[str, Any] = {"kind": kind, "error": {name: getattr(error, name) for name in _KEPT}}
    else:
        document = {"removed": [os.fsencode(path).hex() for path in report.removed]}
        for name in ("skipped_live", "left", "ignored"):
            kept = (asdict(entry) for entry in getattr(report, name))
            document[name] = [{**entry, "path": os.fsencode(entry["path"]).hex()} for entry in kept]
    sys.stdout.write(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1:])
