"""Records of batch jobs, written by the submitting process and by the job itself."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.files import default_root, make_directory, read_kept, replace_kept
from strakes.model.record import from_record
from strakes.runs.store_files import read_json, store_error, write_json

_VARIABLE = "SLURM_JOB_ID"
_MOST_NOTE_BYTES = 4096


@dataclass(frozen=True)
class Job:
    """One job. ``run`` is empty until it has made one (or has gone on with one).

    ``status`` is its exit status once it has ended.
    """

    id: str
    name: str
    command: tuple[str, ...]
    submitted: str
    output: str
    run: str = ""
    status: int | None = None


def is_job_id(text: str) -> bool:
    """Return whether ``text`` has the form of a Slurm job id, which becomes part of a file name.

    >>> is_job_id("4711"), is_job_id("../../x"), is_job_id("")
    (True, False, False)
    """
    return text.isascii() and text.isalnum()


class Jobs:
    """The jobs of a store, in ``jobs`` below its root."""

    def __init__(self, root: Path | None = None) -> None:
        self._directory = (root or default_root()).absolute() / "jobs"

    def make_directory(self) -> Path:
        """Where records and outputs go. Raises EnvironmentLacksError when it cannot be made."""
        try:
            make_directory(self._directory)
        except OSError as error:
            raise store_error(error, self._directory) from error
        return self._directory

    def remember(self, job: Job) -> None:
        """Keep the record of a job."""
        write_json(self._directory / f"{job.id}.json", {"schema": 1, **asdict(job)})

    def find(self, job: str) -> Job:
        """Read one job. Raises BadInputError for one that was not submitted from here."""
        try:
            if not is_job_id(job):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            return self._job(read_json(self._directory / f"{job}.json"))
        except FileNotFoundError:
            remedy = "strakes runs jobs lists the jobs."
            raise BadInputError(
                f"strakes has submitted no job {job!r}", where=str(self._directory), remedy=remedy
            ) from None

    def all(self) -> list[Job]:
        """List them, the earliest first."""
        try:
            names = os.listdir(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        jobs = [self._job(read_json(self._directory / name)) for name in names if name.endswith(".json")]
        return sorted(jobs, key=lambda job: (job.submitted, job.id))

    def take_note(self, run: str, variables: Mapping[str, str] = os.environ) -> None:
        """Inside a job that was submitted from here: the run that it measures."""
        job = variables.get(_VARIABLE, "")
        if is_job_id(job) and (self._directory / f"{job}.json").exists():
            replace_kept(self._directory / f"{job}.run", run.encode())

    def _job(self, record: Mapping[str, Any]) -> Job:
        """Read a job's record and the files written by the job; they are separate because two hosts write them."""
        try:
            job = from_record(Job, record)
            if not is_job_id(job.id):
                raise ValueError("its id is not one of Slurm")
        except (KeyError, TypeError, ValueError) as error:
            where = str(self._directory)
            raise BadInputError("the record of a job is damaged", where=where, why=repr(error)) from error
        with suppress(FileNotFoundError):
            job = replace(job, run=self._note(f"{job.id}.run"))
        with suppress(FileNotFoundError, ValueError):
            job = replace(job, status=int(self._note(f"{job.id}.status")))
        return job

    def _note(self, name: str) -> str:
        return read_kept(self._directory / name, _MOST_NOTE_BYTES).decode(errors="replace").strip()
