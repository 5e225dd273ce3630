"""Remove the objects that a plan with the backend s3 left in a bucket, by the note in its workspace.

The engine removes the objects of a plan at its end, unless it was killed or the store did not answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from strakes.base.errors import StrakesError
from strakes.base.processes import engine_path
from strakes.targets.command import run

# Name prefix of a file in a workspace (engine/workspace/workspace.hpp); the plan's id follows.
NOTE = ".strakes-objects-"
_MOST_NOTE_BYTES = 65536
# Time limit in seconds for all objects of a note. The engine limits the time of each request, and the pages.
_LIMIT_S = 3600.0
_NAMES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "STRAKES_S3_BUCKET")


def remove_noted_objects(workspace: int) -> Iterator[tuple[str, str]]:
    """Remove the objects named by the notes in an open workspace; yield prefix and reason of each failure."""
    for name in sorted(name for name in os.listdir(workspace) if name.startswith(NOTE)):
        where = name
        try:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=workspace)
            with os.fdopen(opened, "rb") as file:
                note = json.loads(file.read(_MOST_NOTE_BYTES))
            where = f"s3://{note['bucket']}/{note['prefix']}"
            why = _other_store(note) or _remove_below(note["prefix"])
        except (ValueError, KeyError, TypeError, AttributeError):
            why = "the note about its objects cannot be read"
        except (OSError, StrakesError) as error:
            why = str(error)
        if why:
            yield where, why
        else:
            os.unlink(name, dir_fd=workspace)


def _other_store(note: dict[str, str]) -> str:
    lacking = [name for name in _NAMES if not os.environ.get(name)]
    if lacking:
        why = f"{', '.join(lacking)} is not set"
    elif (os.environ["AWS_ENDPOINT_URL"].rstrip("/"), os.environ["STRAKES_S3_BUCKET"]) != (
        note["endpoint"],
        note["bucket"],
    ):
        why = f"AWS_ENDPOINT_URL and STRAKES_S3_BUCKET name another store than {note['endpoint']}, {note['bucket']}"
    elif note["prefix"].count("/") != 2 or not note["prefix"].endswith("/"):
        why = "strakes makes no such prefix"
    else:
        return ""
    return f"{why}. Set them and run strakes clean again."


def _remove_below(prefix: str) -> str:
    """Remove all objects below a prefix with strakes's marker, the marker last. Return the reason of failure, or ""."""
    done = run([str(engine_path()), "--remove-objects", prefix], _LIMIT_S)
    try:
        why = json.loads(done.stdout).get("why", "")
    except ValueError:
        why = done.stderr.strip() or f"the engine ended with status {done.status}"
    if not why:
        return ""
    return f"{why}; to remove it yourself: aws s3 rm --recursive s3://{os.environ['STRAKES_S3_BUCKET']}/{prefix}"
