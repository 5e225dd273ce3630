"""Parse the counters of Lustre (`lctl get_param`) and of disks (/proc/diskstats)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from strakes.base.errors import MeasurementError
from strakes.targets.answers import NotUnderstoodError
from strakes.targets.command import Completed
from strakes.targets.description import Interruption
from strakes.targets.lustre_parameters import Stats, parse_recovery, parse_states, parse_stats
from strakes.targets.lustre_tool import Params, device, read_params
from strakes.watch.reading import DATA_TARGETS, DISKS, METADATA_TARGETS, CounterReading, OfKind, Work

SERVER_PARAMETERS = (
    *("mdt.*.md_stats", "mdt.*.job_stats", "mdt.*.recovery_status"),
    *("obdfilter.*.stats", "obdfilter.*.job_stats", "obdfilter.*.recovery_status"),
    *("obdfilter.*.kbytesfree", "obdfilter.*.kbytestotal", "mdt.*.filesfree", "mdt.*.filestotal"),
    *("osd-*.*.mntdev", "ldlm.namespaces.*.pool.limit", "ldlm.namespaces.*.pool.granted"),
)
CLIENT_PARAMETERS = ("mdc.*.state", "osc.*.state")
_PATTERNS = (*SERVER_PARAMETERS, *CLIENT_PARAMETERS, "*.*.*")
_DISK = re.compile(r"^\s*\d+\s+\d+ (\S+) (\d+(?: \d+){10,30}) ?$")
_PROC = re.compile(_DISK.pattern + r"|cpu\d* ")
_USED_FROM_JOB = re.compile(r"^\s+(\w+):\s+\{ samples:\s+(\d+), unit:\s*(\w+)(?:.*?sum:\s+(\d+))?")
# Lustre quotes names with special characters. In quoted names, unescape only quotes and backslashes.
_JOB = re.compile(r'^- job_id:\s+("?)(.+?)\1\s*$')
# Virtual block devices and partitions, which are not whole disks.
_NO_DISK = re.compile(r"^(loop|ram|sr|zram|fd)\d|^(sd|vd|xvd|hd)[a-z]+\d+$|^(nvme|mmcblk).*p\d+$")
_TIMED = ("usecs", "usec")
# Requests that are no evidence of service to users: requests between servers, and requests of idle clients.
_IDLE_REQUESTS = ("statfs", "ping", "connect", "reconnect", "disconnect", "get_info", "set_info", "create", "destroy")
_SERVER_NAMESPACES = ("ldlm.namespaces.mdt-", "ldlm.namespaces.filter-")
_OF_VALUE = re.compile(r"[\s\-a-zA-Z]")  # First character of a line that continues the previous line's value.


def read_text(source: str, time_s: float, text: str) -> CounterReading:
    """Parse the output of ``lctl get_param``, optionally followed by lines of /proc/diskstats."""
    disks: dict[str, str] = {}
    try:
        told = Completed(("lctl", "get_param", *_PATTERNS), 0, text, "")
        disks |= {match[1]: match[2] for line in told.stdout.splitlines() if (match := _DISK.match(line))}
        lines, of_proc = list[str](), False
        for line in told.stdout.splitlines():
            # The value of a parameter ends at the first line of /proc.
            of_proc = (of_proc or bool(_PROC.match(line))) and not _names_parameter(line)
            if not of_proc and (_names_parameter(line) or _OF_VALUE.match(line)):
                lines.append(line)
        params = read_params(replace(told, stdout="".join(f"{line}\n" for line in lines)))
    except MeasurementError as error:
        return CounterReading(source, time_s, work=_disk_work(disks), missing=(error.why or error.what,))
    return reading_of(source, time_s, params, disks)


def _names_parameter(line: str) -> bool:
    """Return whether the line begins with NAME.NAME=. A regular expression could take quadratic time."""
    word = re.match(r"\S*", line)
    assert word is not None
    dot = word[0].find(".", 1)
    return 0 < dot < word[0].rfind("=") - 1


def reading_of(source: str, time_s: float, params: Params, disks: Mapping[str, str]) -> CounterReading:
    """Return a reading of parameters and disk counters. ``disks``: counters of each disk in /proc/diskstats."""
    work: dict[str, dict[str, Work]] = dict(_disk_work(disks))
    serving: dict[str, float] = {}
    served: dict[str, float] = {}
    jobs: dict[str, dict[str, float]] = {}
    job_bytes: dict[str, dict[str, float]] = {}
    recovering = set()
    recovered: dict[str, float] = {}
    waits: list[Interruption] = []
    connected: dict[str, float] = {}
    missing = []
    for parameter, text in params.values.items():
        kind, last = parameter.partition(".")[0], parameter.rpartition(".")[2]
        target = device(parameter)
        if ".exports." in parameter:
            continue
        try:
            if last in ("md_stats", "stats") and kind in ("mdt", "obdfilter"):
                # Count the target as in service even if its counters cannot be parsed.
                serving[target] = 0.0
                stats = parse_stats(text)
                serving[target] = stats.start_s or 0.0
                served[target] = sum(of.samples for name, of in stats.counters.items() if name not in _IDLE_REQUESTS)
                work.setdefault((METADATA_TARGETS if kind == "mdt" else DATA_TARGETS), {})[target] = _work(stats)
            elif last == "job_stats":
                jobs[target], job_bytes[target] = _jobs(text)
            elif last == "recovery_status":
                recovery = parse_recovery(text)
                if not recovery.serving:
                    recovering.add(target)
                elif recovery.started_unix_s is not None and recovery.duration_s is not None:
                    # Add a second, because Lustre truncates the begin and the duration to whole seconds.
                    recovered[target] = recovery.started_unix_s + recovery.duration_s + 1.0
            elif last == "state":
                target, states = target.partition("-mdc-")[0].partition("-osc-")[0], parse_states(text)
                waits += states.interruptions(target)
                since_s = float(states.changes[-1].unix_s) if states.current == "FULL" and states.changes else 0.0
                # A client may have several connections to a target. It is connected only if none of them is lost.
                other_s = connected.get(target, since_s)
                connected[target] = max(since_s, other_s) if since_s and other_s else 0.0
        except NotUnderstoodError as error:
            missing.append(f"{parameter}: {error.what}")
    if params.cut_off and (params.why or not params.values):
        missing.append(params.why or "lctl get_param failed and said nothing")
    return CounterReading(
        source,
        time_s,
        work=work,
        jobs=jobs,
        job_bytes=job_bytes,
        full={
            name.partition(".")[2] + suffix: 1 - free
            for what, suffix in (("kbytes", ""), ("files", " (files)"))
            for name, free in _ratios(params, f".{what}free", f".{what}total").items()
        },
        # Use only the lock limits of servers, because clients cannot exhaust their own limits.
        locks={
            name.removeprefix("ldlm.namespaces."): share
            for name, share in _ratios(params, ".pool.granted", ".pool.limit").items()
            if name.startswith(_SERVER_NAMESPACES)
        },
        # Truncated output may lack serving targets, so report that they are unknown.
        serving=None if params.cut_off else serving,
        served=served,
        recovering=frozenset(recovering),
        recovered=recovered,
        waits=tuple(waits),
        connected=connected,
        devices={
            text.rpartition("/")[2]: device(parameter)
            for parameter, text in params.values.items()
            if parameter.endswith(".mntdev")
        },
        missing=tuple(missing),
    )


def disk_lines(diskstats: str) -> dict[str, str]:
    """Return disk -> the counters in its line of /proc/diskstats, without partitions and virtual devices."""
    matches = (_DISK.match(line) for line in diskstats.splitlines()[:50_000])  # A line takes 500 bytes of memory.
    return {match[1]: match[2] for match in matches if match and not _NO_DISK.match(match[1])}


def _disk_work(disks: Mapping[str, str]) -> dict[str, dict[str, Work]]:
    """Return the number of requests of each disk (with flushes), and the time with at least one request in flight."""
    work = {}
    for name, words in disks.items():
        numbers = [float(word) for word in words.split()]
        flushes = numbers[15] if len(numbers) > 15 else 0.0
        work[name] = Work(numbers[0] + numbers[4] + flushes, numbers[9] / 1000)
    return {DISKS: work} if work else {}


def _work(stats: Stats) -> Work:
    timed = [each for each in stats.counters.items() if each[1].unit in _TIMED and each[1].total is not None]
    requests = sum(counter.samples for _, counter in timed)
    busy = sum((counter.total or 0) for _, counter in timed) / 1e6
    kinds = {
        name: OfKind(
            float(counter.samples),
            (counter.total or 0) / 1e6,
            (counter.squares or 0) / 1e12,
            float(stats.total(f"{name}_bytes")),
        )
        for name, counter in timed
    }
    return Work(float(requests), busy, kinds)


def _jobs(text: str) -> tuple[dict[str, float], dict[str, float]]:
    r"""Parse job_stats. Return job -> operations, and job -> bytes.

    Lustre 2.7 to 2.12 lack the lines "read" and "write", so count the samples of read_bytes and write_bytes.

    >>> line = "  write_bytes: { samples: 7, unit: bytes, min: 1, max: 1, sum: 70 }"
    >>> _jobs(f'- job_id: "b \\"x\\""\n{line}'), _jobs(f"- job_id: a\n{line}\n  write: {{ samples: 9, unit: usecs }}")
    (({'b "x"': 7.0}, {'b "x"': 70.0}), ({'a': 9.0}, {'a': 70.0}))
    """
    counted: dict[str, dict[str, float]] = {}
    job_bytes: dict[str, float] = {}
    job = ""
    for line in text.splitlines():
        if match := _JOB.match(line):
            job = re.sub(r'\\(["\\])', r"\1", match[2]) if match[1] else match[2]
        elif job and (match := _USED_FROM_JOB.match(line)):
            samples = counted.setdefault(job, {})
            samples[match[1]] = samples.get(match[1], 0.0) + float(match[2])
            if match[3] == "bytes":
                job_bytes[job] = job_bytes.get(job, 0.0) + float(match[4] or 0)
    jobs = {
        job: sum(count for name, count in samples.items() if name.removesuffix("_bytes") not in samples.keys() - {name})
        for job, samples in counted.items()
    }
    return jobs, job_bytes


def _ratios(params: Params, part: str, whole: str) -> dict[str, float]:
    ratios = {}
    for parameter, text in params.values.items():
        other = params.values.get(parameter.removesuffix(whole) + part, "")
        if parameter.endswith(whole) and text.isdecimal() and int(text) and other.isdecimal():
            ratios[parameter.removesuffix(whole)] = int(other) / int(text)
    return ratios
