"""Compare the nodes before a run on several of them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from strakes.base.errors import EnvironmentLacksError
from strakes.runs.choice import Launch
from strakes.survey.request import ProgressDisplay
from strakes.targets.workspace import Workspace

_TOKEN = "nodes"


def compare_nodes(
    launch: Launch, processes: Mapping[str, int], workspace: Workspace, progress: ProgressDisplay
) -> dict[str, Any]:
    """Return facts about the hosts that the engine runs on, empty for one host. ``processes``: number by host.

    If the nodes cannot be compared, the facts have the reason under
    "not_compared". Raises EnvironmentLacksError with the nodes that cannot be measured together.
    """
    from strakes.runs.node_facts import examine

    if len(processes) < 2:
        return {}
    facts: dict[str, Any] = {"processes": dict(processes)}
    progress.update("comparing the nodes", 0.0, f"{len(processes)} of them")
    token = secrets.token_hex(8)
    workspace.remove_file(_TOKEN)  # a resumed run may have left one
    workspace.write_file(_TOKEN, token)
    try:
        nodes, differences = examine(
            replace(launch, ranks=len(processes), ranks_per_node=1), str(workspace.path), _TOKEN, token
        )
    except EnvironmentLacksError as error:
        why = f"{error.what}: {error.where} {error.why}".strip()
        progress.note(f"the nodes were not compared: {why}")
        return {**facts, "not_compared": why}
    finally:
        workspace.remove_file(_TOKEN)
    wrong = [difference for difference in differences if difference.wrong]
    if wrong:
        raise EnvironmentLacksError(
            "these nodes cannot be measured together",
            where=", ".join(dict.fromkeys(difference.host for difference in wrong)),
            why="; ".join(f"{difference.host}: {difference.what}" for difference in wrong),
            remedy=wrong[0].remedy or "For details, run strakes doctor --hosts.",
        )
    return {
        **facts,
        "compared": [asdict(node) for node in nodes],
        "differences": [asdict(difference) for difference in differences],
    }
