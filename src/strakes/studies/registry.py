"""All studies by name. A new study needs one module, and one line in this file."""

from __future__ import annotations

from strakes.base.errors import BadInputError, nearest_word
from strakes.studies.access_patterns import AccessPatterns
from strakes.studies.against import PREFIX, Against
from strakes.studies.client_scaling import ClientScaling
from strakes.studies.data_per_process import DataPerProcess
from strakes.studies.imported import ImportedResults
from strakes.studies.layouts import Layouts
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.namespace_scaling import NamespaceScaling
from strakes.studies.nodes import NodesStudy
from strakes.studies.open_close import OpenClose
from strakes.studies.overview import Overview
from strakes.studies.plan_run import PlanRun
from strakes.studies.population import Population
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.recovery import RecoveryStudy
from strakes.studies.replication_cost import ReplicationCost
from strakes.studies.scenarios import RestartDump, StartupLoad
from strakes.studies.small_files import SmallFiles
from strakes.studies.stream import Stream
from strakes.studies.striping import StripingStudy
from strakes.studies.study import Study
from strakes.studies.target_baseline import TargetBaseline
from strakes.studies.transfer_size import TransferSize
from strakes.studies.writers import Writers

STUDIES: tuple[Study, ...] = (
    Overview(),
    TransferSize(),
    DataPerProcess(),
    ProcessesPerNode(),
    NodesStudy(),
    OpenClose(),
    MetadataOps(),
    AccessPatterns(),
    StripingStudy(),
    Layouts(),
    Writers(),
    StartupLoad(),
    RestartDump(),
    Stream(),
    SmallFiles(),
    Population(),
    ClientScaling(),
    TargetBaseline(),
    NamespaceScaling(),
    RecoveryStudy(),
    ReplicationCost(),
)

# The studies that `strakes survey` measures.
SURVEY: tuple[Study, ...] = tuple(study for study in STUDIES if study.in_survey)


def study_named(name: str) -> Study:
    """Return the study with this name. With the prefix ``against:``, return a comparison of two sides.

    Raises BadInputError with a list of all names if the name is unknown.
    """
    if name.startswith(PREFIX):
        return Against(study_named(name.removeprefix(PREFIX)))
    for study in (*STUDIES, PlanRun(), ImportedResults()):
        if study.name == name:
            return study
    near = nearest_word(name, [study.name for study in STUDIES])
    hint = f"Did you mean {near}? " if near else ""
    raise BadInputError(f"no study {name!r}", remedy=f"{hint}One of: {', '.join(study.name for study in STUDIES)}.")
