"""fio: its JSON (--output-format=json or json+), with the lines that fio may print around it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from strakes.errors import BadInputError
from strakes.interop.foreign import Figure, Foreign, gathered, number, slug
from strakes.portrait.model import Setting
from strakes.units import KIB, parse_bytes

_OPTIONS = ("rw", "bs", "size", "ioengine", "iodepth", "numjobs", "direct", "filename", "directory", "fsync", "end_fsync")
_BYTES = {"bs": "block_bytes", "size": "file_bytes"}


def is_json(text: str) -> bool:
    return '"fio version"' in text and ('"jobs"' in text or '"client_stats"' in text)


def read_json(text: str) -> Foreign:
    """Every job's read, write and trim: bandwidth, and operations per second under the same name with ``-operations``."""
    try:
        document, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except ValueError as error:
        raise BadInputError(
            "fio's JSON is broken", why=str(error), remedy="Write it with fio --output=FILE --output-format=json."
        ) from error
    shared = document.get("global options") or {}
    jobs = document.get("jobs") or document.get("client_stats") or []
    figures: list[Figure] = []
    path = ""
    failed = []
    for job in jobs:
        # Servers add a job that is the sum of the others.
        if job.get("jobname") == "All clients":
            continue
        if job.get("error"):
            failed.append(f"fio reports error {job['error']} in job {job['jobname']}")
        options = {**shared, **(job.get("job options") or {})}
        path = path or str(options.get("directory") or options.get("filename") or "")
        for direction in ("read", "write", "trim"):
            figures += _figures(job, direction, _settings(options, job))
    stamp = document.get("timestamp")
    return Foreign(
        "fio",
        gathered(figures),
        version=str(document.get("fio version", "")).removeprefix("fio-"),
        when=datetime.fromtimestamp(int(stamp), UTC) if stamp else None,
        path=path,
        notes=tuple(failed),
    )


def _figures(job: dict[str, Any], direction: str, settings: dict[str, Setting]) -> list[Figure]:
    side = job.get(direction) or {}
    # Before 3.0 there was only bw, in KiB/s.
    bandwidth = number(str(side["bw_bytes"])) if "bw_bytes" in side else number(str(side.get("bw", 0)))
    rate = number(str(side.get("iops", 0)))
    if bandwidth is None or rate is None:
        return []
    scale = 1 if "bw_bytes" in side else KIB
    name = f"{slug(str(job.get('jobname', 'job')))}-{direction}"
    return [
        Figure(name, "bytes_per_s", (bandwidth * scale,), settings),
        Figure(f"{name}-operations", "operations_per_s", (rate,), settings),
    ]


def _settings(options: dict[str, Any], job: dict[str, Any]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for key in _OPTIONS:
        value = str(options.get(key, ""))
        if not value:
            continue
        try:
            settings[_BYTES.get(key, key)] = parse_bytes(value) if key in _BYTES else value
        except BadInputError:
            settings[key] = value
    if "hostname" in job:
        settings["host"] = str(job["hostname"])
    return settings
