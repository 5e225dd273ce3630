"""fio: its JSON (--output-format=json or json+), with the lines that fio may print around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, moment_of, number, slug
from strakes.units import KIB, parse_bytes

_OPTIONS = (
    "rw",
    "bs",
    "size",
    "ioengine",
    "iodepth",
    "numjobs",
    "direct",
    "filename",
    "directory",
    "fsync",
    "end_fsync",
)
_BYTES = {"bs": "block_bytes", "size": "file_bytes"}


def is_json(text: str) -> bool:
    """Return whether the text is fio's JSON."""
    return '"fio version"' in text and ('"jobs"' in text or '"client_stats"' in text)


def read_json(text: str) -> Foreign:
    """Read every job's reads, writes and trims: bandwidth, and operations per second under the same name with
    ``-operations``.

    Documents one after the other are runs one after the other; what --status-interval wrote before the end of a run is
    left out.
    """
    documents = _documents(text)
    whole = [document for document in documents if not any(job.get("eta") for job in _jobs(document))] or documents[-1:]
    first = whole[0]
    jobs = [(document, job) for document in whole for job in _jobs(document)]
    options = [{**(document.get("global options") or {}), **(job.get("job options") or {})} for document, job in jobs]
    stamp = first.get("timestamp")
    return Foreign(
        "fio",
        gathered(figure for document in whole for figure in _of_run(document)),
        version=str(first.get("fio version", "")).removeprefix("fio-"),
        when=moment_of(stamp),
        path=next(
            (
                str(path)
                for job_options in options
                if (path := job_options.get("directory") or job_options.get("filename"))
            ),
            "",
        ),
        notes=tuple(
            dict.fromkeys(
                f"fio reports error {job['error']} in job {job['jobname']}" for _, job in jobs if job.get("error")
            )
        ),
    )


def _documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents in the text, without the lines that fio prints around them and a last one that is cut
    off.
    """
    # Some versions write what printf makes of a mean of nothing.
    text = re.sub(r"(:\s*)-?(?:nan|inf)\b", r"\1null", text)
    documents: list[dict[str, Any]] = []
    place = text.index("{")
    while place >= 0:
        try:
            document, end = json.JSONDecoder().raw_decode(text, place)
        except ValueError as error:
            if documents:
                break
            raise BadInputError(
                "fio's JSON is damaged", why=str(error), remedy="Write it with fio --output=FILE --output-format=json."
            ) from error
        documents.append(document)
        place = text.find("\n{", end)
        place += place >= 0
    return documents


def _jobs(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    jobs: Sequence[Mapping[str, Any]] = document.get("jobs") or document.get("client_stats") or []
    # Servers add a job that is the sum of the others; where there is nothing else, it is all there is to know.
    return [job for job in jobs if job.get("jobname") != "All clients"] or jobs


def _of_run(document: Mapping[str, Any]) -> Iterator[ForeignFigure]:
    """Yield the figures of a document. Jobs of the same name and group ran together and are one figure."""
    shared = document.get("global options") or {}
    together: dict[str, tuple[dict[str, Setting], list[Mapping[str, Any]]]] = {}
    for job in _jobs(document):
        settings = _settings({**shared, **(job.get("job options") or {})}, job)
        key = json.dumps([job.get("jobname"), job.get("groupid"), settings], sort_keys=True)
        together.setdefault(key, (settings, []))[1].append(job)
    for settings, jobs in together.values():
        for direction in ("read", "write", "trim", "mixed"):
            sides = [_side(job[direction]) for job in jobs if job.get(direction)]
            bandwidth = _rate([side.moved for side in sides], sides, [side.bandwidth for side in sides])
            rate = _rate([side.operations for side in sides], sides, [side.iops for side in sides])
            if bandwidth is not None and rate is not None:
                name = f"{slug(str(jobs[0].get('jobname', 'job')))}-{direction}"
                yield ForeignFigure(name, "bytes_per_s", (bandwidth,), settings)
                yield ForeignFigure(f"{name}-operations", "operations_per_s", (rate,), settings)


@dataclass(frozen=True)
class _Side:
    """The reads, writes or trims of a job: bytes, operations, and the rates that fio states (B/s, op/s)."""

    moved: float
    operations: float
    runtime_ms: float
    bandwidth: float
    iops: float


def _side(stated: Mapping[str, Any]) -> _Side:
    # Before 3.0 io_bytes was in KiB, and these two keys were not there.
    unit = 1 if {"io_kbytes", "bw_bytes"} & stated.keys() else KIB
    bandwidth = _number(stated, "bw_bytes") if "bw_bytes" in stated else _number(stated, "bw") * KIB
    moved, operations = _number(stated, "io_bytes") * unit, _number(stated, "total_ios")
    return _Side(moved, operations, _number(stated, "runtime"), bandwidth, _number(stated, "iops"))


def _rate(amounts: Sequence[float], sides: Sequence[_Side], stated: Sequence[float]) -> float | None:
    """Return all work over the time of the slowest job, as in fio's own summary; else the sum of the stated rates.

    The amounts are finer than the rates, which are whole numbers of KiB/s and, before 2.2, of operations.
    """
    if sides and all(amounts) and all(side.runtime_ms for side in sides):
        return sum(amounts) * 1000 / max(side.runtime_ms for side in sides)
    return sum(stated) or None


def _number(side: Mapping[str, Any], key: str) -> float:
    return number(str(side.get(key, 0))) or 0.0


def _settings(options: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Setting]:
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
