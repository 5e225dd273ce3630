"""Turns a description into all files of a plan, and writes them."""

from __future__ import annotations

import os
from pathlib import Path

from strakes.errors import BadInputError
from strakes.failover.cluster import Cluster
from strakes.failover.description import read_description
from strakes.failover.planned.alerts import alert_files
from strakes.failover.planned.corosync import corosync_file
from strakes.failover.planned.drbd import drbd_files
from strakes.failover.planned.lustre import lustre_files
from strakes.failover.planned.pacemaker import pacemaker_file
from strakes.failover.planned.planned_file import PlannedFile
from strakes.failover.planned.runbook import runbook
from strakes.files import write_below

DESCRIPTION = "cluster.toml"


def plan_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return all files of the plan but the description itself."""
    files = (
        *drbd_files(cluster),
        corosync_file(cluster),
        pacemaker_file(cluster),
        *alert_files(cluster),
        *lustre_files(cluster),
    )
    return (*files, runbook(cluster, files))


def write_plan(description: Path, directory: Path, *, replace: bool) -> tuple[Cluster, tuple[PlannedFile, ...]]:
    """Plan ``description`` into ``directory``; an earlier plan there is only overwritten with ``replace``.

    Raises BadInputError for a description that is refused and a directory that cannot be used.
    """
    cluster = read_description(description)
    files = (PlannedFile(DESCRIPTION, description.read_text(encoding="utf-8")), *plan_files(cluster))
    try:
        if directory.exists() and os.listdir(directory) and not replace:
            raise BadInputError(
                "the directory is not empty",
                where=str(directory),
                remedy="Give another one, or --replace to write over an earlier plan.",
            )
        directory.mkdir(parents=True, exist_ok=True)
        for file in files:
            write_below(directory, file.path, file.text.encode(), file.mode)
    except OSError as error:
        raise BadInputError(
            "the plan cannot be written", where=error.filename or str(directory), why=error.strerror or str(error)
        ) from error
    return cluster, files
