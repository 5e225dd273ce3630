"""``health_check`` and ``recovery_status`` of servers: who is not well, and who takes clients back or did so lately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strakes.errors import StrakesError
from strakes.targets.command import Runner
from strakes.targets.description import TargetRecovery
from strakes.targets.lustre.answers import Answers
from strakes.targets.lustre.ask_each import ask_each
from strakes.targets.lustre.connections import THIS_NODE
from strakes.targets.lustre.lctl_param import Params, device, get_param
from strakes.targets.lustre.own import is_target_of
from strakes.targets.lustre.recovery_status import PARAMETERS, Recovery, parse_recovery

_HEALTH = "health_check"
_WELL = "healthy"


@dataclass(frozen=True)
class Health:
    """What servers say of themselves: how their targets recovered, and what is wrong, a sentence each."""

    recoveries: tuple[TargetRecovery, ...]
    complaints: tuple[str, ...]


def ask_health(answers: Answers, ways: Mapping[str, Runner], file_system: str) -> Health:
    """Ask every server that can be asked, and this client; ``answers`` notes those that did not answer."""

    def ask(host: str) -> Mapping[str, str] | StrakesError:
        try:
            return get_param(_HEALTH, *PARAMETERS).ask(ways[host]).values
        except StrakesError as error:
            return error

    recoveries: list[TargetRecovery] = []
    complaints: list[str] = []
    own = answers.get(get_param(_HEALTH), Params({})).values if THIS_NODE not in ways else {}
    if wrong := complaint(own.get(_HEALTH, _WELL)):
        complaints.append(f"This client is not healthy: {wrong}.")
    for host, values in ask_each(ways, ask).items():
        if isinstance(values, StrakesError):
            answers.note(values)
            continue
        if wrong := complaint(values.get(_HEALTH, _WELL)):
            complaints.append(f"{host} is not healthy: {wrong}.")
        for parameter, text in values.items():
            if parameter == _HEALTH or not is_target_of(device(parameter), file_system):
                continue
            try:
                recoveries.append(as_counted(device(parameter), parse_recovery(text)))
            except StrakesError as error:
                answers.note(error)
    complaints += [_in_words(recovery) for recovery in recoveries if not recovery.serving]
    return Health(tuple(recoveries), tuple(complaints))


def complaint(text: str) -> str:
    r"""Return what ``health_check`` complains of; empty where it does not.

    >>> complaint("healthy"), complaint("device labfs-OST0001 reported unhealthy\nNOT HEALTHY")
    ('', 'device labfs-OST0001 reported unhealthy')
    """
    lines = [line for each in text.splitlines() if (line := each.strip()) not in ("", _WELL)]
    if not lines:
        return ""
    return "; ".join(line for line in lines if line != "NOT HEALTHY") or "it does not say why"


def as_counted(target: str, recovery: Recovery) -> TargetRecovery:
    """Return a target's recovery in the words that all file systems have."""
    return TargetRecovery(
        target,
        recovery.status,
        recovery.duration_s,
        recovery.all_clients,
        recovery.evicted_clients,
        recovery.replayed_requests,
        recovery.started_unix_s,
        recovery.serving,
    )


def _in_words(recovery: TargetRecovery) -> str:
    return f"{recovery.target} is taking its clients back at the moment ({recovery.status})."
