"""fio: JSON output (--output-format=json or json+), even if it is between other lines of fio."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import KIB, parse_bytes
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, slug, time_of
from strakes.interop.reader_blocks import Document, Result
from strakes.model.portrait import Setting

_KEYS = ("rw", "bs", "size", "ioengine", "iodepth", "numjobs", "direct", "filename", "directory", "fsync", "end_fsync")
_BYTES = {"bs": "block_bytes", "size": "file_bytes"}


def read_json(documents: Sequence[Document]) -> Iterator[Result]:
    """Yield each run with its bandwidth and operations per second. Skip intermediate results."""
    whole = [(document, document.value) for document in documents if not isinstance(document.value, str)]
    runs = [(document, run) for document, value in whole for run in _runs(value)]
    for (document, run), (_, later) in zip(runs, [*runs[1:], (None, None)], strict=False):
        unfinished = later is not None and (any(job.get("eta") for job in _jobs(run)) or _begun(run) == _begun(later))
        if not unfinished:
            test = _run(run)
            yield test if test.figures else document.unread(", ".join(test.notes) or "no job read or wrote anything")
    for document in documents:
        if isinstance(document.value, str):
            yield document.unread(f"not valid JSON ({document.value})")


def _runs(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "jobs" in document or "client_stats" in document:
        return [document]
    lists = (value for value in document.values() if isinstance(value, list))
    return [run for runs in lists for run in runs if isinstance(run, dict) and "fio version" in run]


def _begun(run: Mapping[str, Any]) -> object:
    jobs = _jobs(run)
    elapsed = max((int(_number(job, "elapsed")) for job in jobs), default=0)
    names = [job.get("jobname") for job in jobs]
    return [names, int(_number(run, "timestamp")) - elapsed] if elapsed and run.get("timestamp") else id(run)


def _run(run: Mapping[str, Any]) -> Foreign:
    jobs = _jobs(run)
    options = [{**(run.get("global options") or {}), **(job.get("job options") or {})} for job in jobs]
    errors = [f"fio reports error {job['error']} in job {job.get('jobname')}" for job in jobs if job.get("error")]
    paths = (str(path) for one in options if (path := one.get("directory") or one.get("filename")))
    hosts = dict.fromkeys(str(job["hostname"]) for job in jobs if "hostname" in job)
    return Foreign(
        "fio",
        gathered(_figures(jobs, options)),
        version=str(run.get("fio version", "")).removeprefix("fio-"),
        when=time_of(str(run.get("timestamp", ""))),
        path=next(paths, ""),
        host=", ".join(hosts),
        notes=tuple(dict.fromkeys(errors)),
    )


def _jobs(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    jobs: Sequence[Mapping[str, Any]] = document.get("jobs") or document.get("client_stats") or []
    return jobs


def _figures(jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, Any]]) -> Iterator[ForeignFigure]:
    """Yield the rates of a run. Jobs with equal name, group and settings ran together, so they share one rate."""
    together: dict[str, tuple[dict[str, Setting], list[Mapping[str, Any]]]] = {}
    for job, given in zip(jobs, options, strict=True):
        settings = _settings(given, job)
        key = json.dumps([job.get("jobname"), job.get("groupid"), settings], sort_keys=True)
        together.setdefault(key, (settings, []))[1].append(job)
    for settings, same in together.values():
        for direction in ("read", "write", "trim", "mixed"):
            sides = [job[direction] for job in same if job.get(direction)]
            # fio before 3.0 has neither io_kbytes nor bw_bytes, and its io_bytes is in KiB.
            units = [1 if {"io_kbytes", "bw_bytes"} & side.keys() else KIB for side in sides]
            moved = [_number(side, "io_bytes") * unit for side, unit in zip(sides, units, strict=True)]
            stated = [_number(side, "bw_bytes") or _number(side, "bw") * KIB for side in sides]
            bandwidth = _rate(sides, moved, stated)
            rate = _rate(
                sides, [_number(side, "total_ios") for side in sides], [_number(side, "iops") for side in sides]
            )
            if bandwidth is not None and rate is not None:
                name = f"{slug(str(same[0].get('jobname', 'job')))}-{direction}"
                yield ForeignFigure(name, "bytes_per_s", (bandwidth,), settings)
                yield ForeignFigure(f"{name}-operations", "operations_per_s", (rate,), settings)


def _rate(sides: Sequence[Mapping[str, Any]], amounts: Sequence[float], stated: Sequence[float]) -> float | None:
    """Return total work / time of the slowest job, as in fio's summary. If these are missing, sum the printed rates.

    fio rounds printed rates to KiB/s and, before version 2.2, to whole operations per second.
    """
    runtimes_ms = [_number(side, "runtime") for side in sides]
    if sides and all(amounts) and all(runtimes_ms):
        return sum(amounts) * 1000 / max(runtimes_ms)
    return sum(stated) or None


def _number(side: Mapping[str, Any], key: str) -> float:
    return number(str(side.get(key, 0))) or 0.0


def _settings(options: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {key: str(options[key]) for key in _KEYS if str(options.get(key, ""))}
    for key, name in _BYTES.items():
        with suppress(BadInputError, KeyError):
            settings[name] = parse_bytes(str(settings[key]))
            del settings[key]
    # fio's job "All clients" is the sum over several servers. Ignore its host name, which is only the last server's.
    has_host = "hostname" in job and job.get("jobname") != "All clients"
    return settings | ({"host": str(job["hostname"])} if has_host else {})
