"""The run-book: installation of the plan, explanations of its lines, and the steps after a failure."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from strakes.failover.cluster import Cluster
from strakes.failover.planned.drbd import AUTHENTICATION
from strakes.failover.planned.lustre import PUBLISHED_S_PER_CLIENT, recovery_limits
from strakes.failover.planned.planned_file import PlannedFile
from strakes.failover.planned.pools import pool_lines

if TYPE_CHECKING:
    from jinja2 import Template


def runbook(cluster: Cluster, files: tuple[PlannedFile, ...]) -> PlannedFile:
    """Write the run-book. Its steps are blocks of shell commands; ``on=A,B`` names the nodes for a block."""
    soft, hard = recovery_limits(cluster)
    text = _template().render(
        cluster=cluster,
        files=files,
        first=cluster.nodes[0],
        second=cluster.nodes[1],
        password_scripts=sorted(
            {node.bmc.password_script for node in cluster.nodes}
            | {pdu.password_script for node in cluster.nodes for pdu in node.pdus if pdu.password_script}
        ),
        authentication=AUTHENTICATION,
        pool_lines=pool_lines,
        s_per_client=PUBLISHED_S_PER_CLIENT,
        soft_s=soft,
        hard_s=hard,
    )
    return PlannedFile("RUNBOOK.md", text)


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = resources.files("strakes").joinpath("failover/templates/runbook.md.j2").read_text(encoding="utf-8")
    # The output is Markdown, which needs no escapes.
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    return environment.from_string(source)
