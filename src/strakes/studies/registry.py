"""Registry of all studies by name. A new study needs a module and an entry here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from strakes.base.errors import BadInputError, did_you_mean
from strakes.studies.study import Study

# Study -> class. The module has the name of the study with underscores, or the name in _MODULES.
_CLASSES = {
    "overview": "Overview",
    "transfer-size": "TransferSize",
    "data-per-process": "DataPerProcess",
    "processes-per-node": "ProcessesPerNode",
    "nodes": "NodesStudy",
    "open-close": "OpenClose",
    "metadata-ops": "MetadataOps",
    "access-patterns": "AccessPatterns",
    "striping": "StripingStudy",
    "layouts": "Layouts",
    "writers": "Writers",
    "startup-load": "StartupLoad",
    "restart-dump": "RestartDump",
    "stream": "Stream",
    "small-files": "SmallFiles",
    "population": "Population",
    "client-scaling": "ClientScaling",
    "target-baseline": "TargetBaseline",
    "namespace-scaling": "NamespaceScaling",
    "recovery": "RecoveryStudy",
    "replication-cost": "ReplicationCost",
}
# Studies that present the results of ``strakes run`` and of ``strakes import``.
_UNNAMED = {"plan": "PlanRun", "imported": "ImportedResults"}
_MODULES = {"plan": "plan_run", "startup-load": "scenarios", "restart-dump": "scenarios"}
NAMES = tuple(_CLASSES)


@cache
def study_named(name: str) -> Study:
    """Return the study with this name. The prefix ``against:`` selects a comparison of two file systems.

    For an unknown name, raises BadInputError that suggests the nearest one.
    """
    prefix, _, inner = name.rpartition(":")
    if prefix == "against":
        from strakes.studies.against import Against

        return Against(study_named(inner))
    if kind := _CLASSES.get(name) or _UNNAMED.get(name):
        module = import_module(f"strakes.studies.{_MODULES.get(name, name.replace('-', '_'))}")
        return cast("Study", getattr(module, kind)())
    raise BadInputError(f"no study {name!r}", remedy=did_you_mean(name, NAMES))


def studies() -> tuple[Study, ...]:
    """Return all studies that ``strakes study`` runs."""
    return tuple(map(study_named, NAMES))


def survey_studies() -> tuple[Study, ...]:
    """Return the studies that ``strakes survey`` runs."""
    return tuple(study for study in studies() if study.in_survey)
