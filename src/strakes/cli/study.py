"""``strakes study``: run one study with every value of its settings, or all studies of a publication."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError
from strakes.base.files import default_root
from strakes.base.units import typed_seconds
from strakes.cli import options
from strakes.cli.fault_options import FaultOptions
from strakes.cli.options import DIRECTORY, Amounts, Output, Sampling, argument, command_named, option, write_json
from strakes.cli.say import remark, say, say_sentence, say_text

if TYPE_CHECKING:
    from strakes.model.portrait import Portrait
    from strakes.runs.run import Run
    from strakes.studies.study import Study

_KNOB = "--knob mds_cache_memory_limit=256MiB,1GiB"


@command_named("study", budget_s="5m")
def command(
    *,
    name: str = argument("NAME"),
    directory: Path | None = argument("DIR", type=DIRECTORY, required=False),
    knob: str | None = option(
        "Compare two values of the system setting NAME, in turn; the old value is put back after each measurement.",
        metavar="NAME=A,B",
    ),
    sampling: Sampling,
    amounts: Amounts,
    libcephfs: options.Libcephfs,
    against: options.Against,
    like: options.Like,
    fault: FaultOptions,
) -> int:
    """Run the study NAME on DIR. "strakes study list" lists the studies.

    --against measures two file systems alternately, and the report says which is faster, with intervals. --knob does
    the same for two values of a setting. The options about faults (--fault to --bmc-password-file) apply only to the
    study "recovery", whose default fault is mds-kill.
    """
    from strakes.cli.measure import measure, request_from
    from strakes.studies.against import Against as Pair
    from strakes.studies.registry import NAMES, studies, study_named

    if name == "list" and directory is None:
        for study in studies():
            label = f"{study.name:<20} {study.source}  "
            say_sentence(label + study.question, indent=len(label))
        return 0
    if directory is None:
        what, given = ("the name of the study", f"NAME {name}") if "/" in name else ("DIR", f"{name} DIR")
        remedy = f"Give both: strakes study {given}. strakes study list shows the names."
        raise BadInputError(f"{what} is missing", remedy=remedy)
    study = study_named(name)
    if name not in NAMES:
        raise BadInputError(f"{name!r} is not a study", remedy="List all studies: strakes study list")
    if against is not None and study.visits_in_sequence:
        remedy = "Measure both directories, one after the other, without --against."
        raise BadInputError(f"the study {name} cannot alternate between two directories", remedy=remedy)
    if knob is not None and (against is not None or study.visits_in_sequence):
        other = "--against" if against is not None else f"the study {name}"
        remedy = "Leave out one of them. strakes study small-files measures floods of files."
        raise BadInputError(f"--knob cannot be used with {other}", remedy=remedy)
    visit = None
    if study.interrupts_service:
        from strakes.control.drill_run import drill_visit
        from strakes.studies.recovery import TIMING

        make = partial(fault.make, servers=sampling.servers, usual="mds-kill")
        make(directory)
        fault.require_consent(directory)
        visit = drill_visit(make, TIMING, default_root(), sampling.servers)
    elif fault != FaultOptions():
        raise BadInputError(f"the study {name} causes no fault", remedy="Leave out --fault and its options.")
    varied: Study = study if against is None else Pair(study)
    if study.alone and against is None:
        say(study.alone, err=True)
    for setting, values in options.assignments([knob] if knob else (), _KNOB).items():
        both = values.split(",")
        if len(both) != 2 or not all(both):
            raise BadInputError(f"--knob {knob} does not name two values", remedy=f"Write, for example, {_KNOB}.")
        varied = Pair(study, setting, *both)
    request = replace(
        request_from(sampling, "study", name, directory, (varied,), amounts),
        against=against,
        like=options.like_run(like, amounts.data_per_rank, amounts.phase_s),
        visit=visit,
        libcephfs=libcephfs,
    )
    return measure(request, sampling)


# Share of the time budget for the study that creates many files. Twice the share would leave nothing for other studies.
_SHARE_OF_POPULATION = 0.5
_LEAST_S = 10.0


@command_named("reproduce", budget_s="10m")
def reproduce(
    *,
    libcephfs: options.Libcephfs,
    against: options.Against,
    source: str = argument("SOURCE", type=click.Choice(["S1", "S2", "S3", "S4", "S5"], case_sensitive=False)),
    directory: Path = argument("DIR", type=DIRECTORY),
    sampling: Sampling,
    amounts: Amounts,
) -> int:
    """Repeat the measurements of SOURCE at a scale that fits here, and compare its values with yours.

    SOURCE is one of five publications: S1 user-level I/O configuration, S2 metadata devices, S3 floods of small files,
    S4 metadata targets, S5 access patterns. Published values are never mixed with measured ones. Measurements that are
    impossible on DIR are skipped, with the reason. For S3, --files is the final number of files.
    """
    from strakes.cli.measure import analyse, perform, report_path, request_from, write_report
    from strakes.model.literature import SOURCES
    from strakes.report.reproduced import render, to_document
    from strakes.studies.against import Against as Pair
    from strakes.studies.registry import study_named

    chosen = SOURCES[source.upper()]
    if chosen.grown and sampling.resume:
        first = f"strakes study {chosen.studies[0]} {shlex.quote(str(directory))} --resume"
        what = f"{chosen.name} consists of several runs and cannot be resumed as a whole"
        raise BadInputError(what, remedy=f"Resume the studies of {chosen.name} one by one, beginning with: {first}")
    if chosen.grown and against is not None:
        remedy = "Compare a single study: strakes study small-files DIR --against DIR2."
        why = "one of its studies grows a population of files, and cannot alternate between directories"
        raise BadInputError(f"{chosen.name} cannot alternate between two directories", why=why, remedy=remedy)
    done: list[tuple[Portrait, Run, Output | None]] = []
    began, parts = time.monotonic(), list(filter(None, ((chosen.grown,) if chosen.grown else (), chosen.studies)))
    if sampling.budget_s < (least_s := len(parts) * _LEAST_S):
        given, least = typed_seconds(sampling.budget_s), typed_seconds(least_s)
        remark(f"--budget {given} is too short for {chosen.name}: expect about {least}, more on a slow file system")
    for names in parts:
        is_population = names == (chosen.grown,)
        left_s = sampling.budget_s - (time.monotonic() - began)
        part = replace(
            sampling,
            budget_s=max(_LEAST_S, _SHARE_OF_POPULATION * sampling.budget_s if is_population else left_s),
            html=None if is_population else sampling.html,
        )
        studies = tuple(study_named(name) if against is None else Pair(study_named(name)) for name in names)
        own = replace(amounts, files=None) if chosen.grown and not is_population else amounts
        request = request_from(part, "reproduce", f"{chosen.name} {' '.join(names)}", directory, studies, own)
        request = replace(request, against=against, libcephfs=libcephfs, whole_budget_s=sampling.budget_s)
        run = perform(request, part)
        done.insert(0, (analyse(run), run, part.html))
    portraits = [portrait for portrait, _, _ in done]
    if write_json(sampling.json, to_document(chosen, portraits)):
        say_text(render(chosen, portraits, [str(report_path(run, html)) for _, run, html in done]))
    for portrait, run, html in done:
        write_report(portrait, run, html)
    return 0
