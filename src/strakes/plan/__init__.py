"""Plans: what the engine is told to do, as values with a canonical form and a fingerprint."""

from strakes.plan.metadata import MetadataPhase
from strakes.plan.mixed import MixedPhase, Part, PartPhase
from strakes.plan.model import Phase, Plan, WholePhase, plan_from_json
from strakes.plan.probe import ProbePhase
from strakes.plan.small_files import FlowOperation, SmallFilesPhase
from strakes.plan.stage import StagePhase
from strakes.plan.stop import AMOUNT, Stop
from strakes.plan.training import TrainingPhase
from strakes.plan.transfer import SizeShare, StreamPhase, TransferPhase

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
