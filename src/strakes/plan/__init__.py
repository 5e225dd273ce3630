"""Plans for the engine, as values with a canonical form and a fingerprint."""

from strakes.plan.model import Phase, Plan, WholePhase, plan_from_json
from strakes.plan.phases import (
    AMOUNT,
    FlowOperation,
    MetadataPhase,
    MixedPhase,
    Part,
    PartPhase,
    ProbePhase,
    SizeShare,
    SmallFilesPhase,
    StagePhase,
    Stop,
    StreamPhase,
    TrainingPhase,
    TransferPhase,
)

__all__ = [
    "AMOUNT",
    "FlowOperation",
    "MetadataPhase",
    "MixedPhase",
    "Part",
    "PartPhase",
    "Phase",
    "Plan",
    "ProbePhase",
    "SizeShare",
    "SmallFilesPhase",
    "StagePhase",
    "Stop",
    "StreamPhase",
    "TrainingPhase",
    "TransferPhase",
    "WholePhase",
    "plan_from_json",
]
