"""Recognise a file of a cluster by its content, and convert other forms of Pacemaker's configuration to a CIB."""

from __future__ import annotations

import re
from collections.abc import Mapping

from strakes.failover.cib_builder import CibBuilder
from strakes.failover.crm_text import STATEMENT, read_crm
from strakes.failover.haresources import read_haresources
from strakes.failover.pcs_commands import COMMAND, read_pcs_commands
from strakes.failover.pcs_config import HEADS, read_pcs_config

CIB, COROSYNC, HARESOURCES = "pacemaker/cib.xml", "etc/corosync/corosync.conf", "etc/ha.d/haresources"
CRM, PCS_COMMANDS, PCS_CONFIG = "pacemaker/crm.txt", "pacemaker/pcs.sh", "pacemaker/pcs-config.txt"
# After "^", blanks within a line only: across lines, the time grows with their square.
_KINDS = (
    (re.compile(r"(?s)\A\s*(?:<\?xml.*?\?>\s*)?(?:<!--.*?-->\s*)?<cib[\s>]"), CIB),
    (re.compile(r"(?m)^[ \t]*totem\s*\{"), COROSYNC),
    (re.compile(r"(?m)^[ \t]*(?:resource\s+\S+|common|global)\s*\{"), "etc/drbd.d/{name}"),
    (HEADS, PCS_CONFIG),
    (COMMAND, PCS_COMMANDS),
    (STATEMENT, CRM),
)


def place_of_source(name: str, text: str) -> str:
    """Return the path at which a setup expects a file with this content, empty for any other text.

    >>> place_of_source("a.xml", "<cib epoch='1'/>"), place_of_source("r0.res", "resource r0 {")
    ('pacemaker/cib.xml', 'etc/drbd.d/r0.res')
    """
    if name == "haresources":
        return HARESOURCES
    found = next((place for pattern, place in _KINDS if pattern.search(text)), "")
    return found.format(name=name)


def built_cib(texts: Mapping[str, str]) -> tuple[str, CibBuilder] | None:
    """Return the name of a file with another form of the configuration and the CIB that it describes, or None."""
    for name, read in ((PCS_CONFIG, read_pcs_config), (CRM, read_crm), (PCS_COMMANDS, read_pcs_commands)):
        if name in texts:
            return name, _with_nodes(read(texts[name]), texts)
    if HARESOURCES in texts:
        return HARESOURCES, read_haresources(texts[HARESOURCES], texts.get("etc/ha.d/ha.cf", ""))
    return None


def _with_nodes(builder: CibBuilder, texts: Mapping[str, str]) -> CibBuilder:
    """Add nodes if no statement does: from Corosync, DRBD, fencing devices, constraints, or two new ones."""
    if not builder.node_names:
        builder.nodes_assumed = True
        drbd = "\n".join(text for name, text in texts.items() if name.startswith("etc/drbd"))
        named = (
            re.findall(r"(?m)^\s*name:\s*(\S+)", texts.get(COROSYNC, ""))
            or re.findall(r"\bon\s+(\S+)\s*\{", drbd)
            or " ".join(re.findall(r'name="pcmk_host_list" value="([^"]*)"', builder.text)).replace(",", " ").split()
            or re.findall(r'<rsc_location [^>]*node="([^"]*)"', builder.text)
        )
        for name in dict.fromkeys(named or ("node1", "node2")):
            builder.node(name)
    return builder
