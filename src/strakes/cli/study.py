"""``strakes study NAME DIR``: run one study with every level of its factors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from strakes.base.errors import BadInputError
from strakes.cli.fault_options import AskedFault, drill_visit, fault_options
from strakes.cli.options import (
    DIRECTORY,
    Amounts,
    Sampling,
    amount_options,
    batch_option,
    libcephfs_option,
    like_option,
    like_run,
    measuring_options,
)
from strakes.cli.say import say_sentence


@click.command("study")
@click.argument("name")
@click.argument("directory", metavar="DIR", type=DIRECTORY, required=False)
@measuring_options("5m")
@amount_options
@batch_option
@libcephfs_option
@click.option(
    "--against",
    metavar="DIR2",
    type=DIRECTORY,
    help="Also measure DIR2, in turn with DIR, and compare the two.",
)
@click.option(
    "--knob",
    metavar="NAME=A,B",
    help="Compare two values of the system setting NAME, in turn; it is put back after every visit.",
)
@like_option
@fault_options
@click.option(
    "--yes-this-interrupts-service",
    "agreed",
    is_flag=True,
    help="Confirm that the study recovery may interrupt the service.",
)
def command(
    name: str,
    directory: Path | None,
    options: Sampling,
    amounts: Amounts,
    batch: str | None,
    libcephfs: bool,
    against: Path | None,
    knob: str | None,
    like: str | None,
    agreed: bool,
    fault: AskedFault,
) -> int:
    """Run the study NAME on DIR. "strakes study list" lists the studies.

    With --against, both file systems are measured in turn, and the report says which is faster, with intervals; with
    --knob, both values of a setting.
    The options about faults (--fault to --bmc-password-file) are for the study recovery only, whose default fault is
    mds-kill.
    """
    from strakes.cli.measure import measure, request_from
    from strakes.studies.against import Against
    from strakes.studies.registry import STUDIES, study_named

    if name == "list":
        for study in STUDIES:
            label = f"{study.name:<20} {study.source}  "
            say_sentence(label + study.question, indent=len(label))
        return 0
    if "/" in name:
        remedy = f"Give the name first: strakes study NAME {name}. strakes study list shows all studies."
        raise BadInputError(f"{name!r} is not a study", remedy=remedy)
    if directory is None:
        raise BadInputError("DIR is missing", remedy=f"Give DIR: strakes study {name} DIR")
    study = study_named(name)
    if study not in STUDIES:
        raise BadInputError(f"{name!r} is not a study", remedy="strakes study list shows all studies.")
    if against is not None and study.visits_in_sequence:
        remedy = "Measure both directories, one after the other, without --against."
        raise BadInputError(f"the study {name} cannot be interleaved with a second directory", remedy=remedy)
    visit = None
    if study.interrupts_service:
        visit = drill_visit(directory, agreed, fault, options.servers)
    elif agreed or fault.name or any(fault.words.values()):
        raise BadInputError(f"the study {name} causes no fault", remedy="Leave out --fault and its options.")
    if knob is not None and (against is not None or study.visits_in_sequence):
        remedy = (
            "Leave out --against." if against is not None else "strakes study small-files measures floods of files."
        )
        raise BadInputError(
            f"--knob cannot be used with {'--against' if against else f'the study {name}'}", remedy=remedy
        )
    studies = (study if against is None and knob is None else Against(study, *_values(knob)),)
    request = replace(
        request_from(options, "study", name, directory, studies, full=True, amounts=amounts),
        against=against,
        like=like_run(like, amounts.data_per_rank, amounts.phase_s),
        visit=visit,
        libcephfs=libcephfs,
    )
    return measure(request, options, batch=batch)


def _values(knob: str | None) -> tuple[str, ...]:
    """Return the setting and its two values, or an empty tuple. Raises BadInputError for any other form."""
    if knob is None:
        return ()
    name, _, values = knob.partition("=")
    before, _, after = values.partition(",")
    if not name or not before or not after or "," in after:
        remedy = "Give a setting with two values, such as --knob mds_cache_memory_limit=256MiB,1GiB."
        raise BadInputError(f"--knob {knob} does not name two values", remedy=remedy)
    return name, before, after
