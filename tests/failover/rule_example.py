"""Examples of rules. Each is a change to a good pair, with one statement per line.

The statements are those of ``crm configure``; one with the name of an earlier one replaces it. Further statements are
``without ID``, ``level NODE INDEX DEVICES``, ``corosync SECTION KEY=VALUE`` (``node.1`` is the first node, an empty
value removes a key), ``drbd TEXT``, ``replicated MOUNT`` (puts DRBD with the clone ``m`` below a mount), ``xml SECTION
ELEMENT`` for other parts of the CIB, and ``file NAME: TEXT``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.failover.crm_text import read_crm
from strakes.failover.setup import Setup, setup_of

_TIMES = "op monitor interval=20s timeout=40s op start timeout=60s op stop timeout=60s"
_PAIR = (
    "property stonith-enabled=true",
    "rsc_defaults resource-stickiness=1000",
    "node a",
    "node b",
    *(
        f"primitive fence_{node} stonith:fence_ipmilan ip=10.9.0.{number} lanplus=1 username=u password_script=/etc/p "
        f"pcmk_host_list={node} {delay} op monitor interval=60s timeout=60s"
        for node, number, delay in (("a", 1, "pcmk_delay_base=10s"), ("b", 2, ""))
    ),
    f"primitive fs ocf:heartbeat:Filesystem device=/dev/vg/data directory=/srv/data fstype=ext4 {_TIMES}",
    "primitive ip ocf:heartbeat:IPaddr2 ip=10.0.0.9 cidr_netmask=24 op monitor interval=10s timeout=20s",
    "group g fs ip",
    "corosync totem version=2 cluster_name=pair transport=knet token=3000 crypto_cipher=aes256 crypto_hash=sha256",
    "corosync quorum provider=corosync_votequorum two_node=1",
    "corosync node.1 name=a nodeid=1 ring0_addr=10.0.0.1 ring1_addr=10.0.1.1",
    "corosync node.2 name=b nodeid=2 ring0_addr=10.0.0.2 ring1_addr=10.0.1.2",
)
# The statements that put DRBD below a mount of the pair.
_REPLICATED = (
    "drbd resource r { on a { device /dev/drbd0; disk /dev/vg/r; } on b { device /dev/drbd0; disk /dev/vg/r; } }",
    "primitive d ocf:linbit:drbd drbd_resource=r",
    "ms m d meta notify=true",
    "primitive {name} ocf:heartbeat:Filesystem device=/dev/drbd0 directory=/srv/data fstype=ext4",
)


def setup_of_example(statements: Iterable[str]) -> Setup:
    return setup_of("an example", Path("/nonexistent"), _Pair((*_PAIR, *statements)).texts(), None)


class _Pair:
    """The statements of the pair by name, and the parts that ``crm`` does not configure."""

    def __init__(self, statements: Iterable[str]) -> None:
        self._crm: dict[str, str] = {}
        self._levels: list[list[str]] = []
        self._elements: list[tuple[str, str]] = []
        self._corosync: dict[str, dict[str, str]] = {}
        self._files: dict[str, str] = {}
        for statement in statements:
            self._take(*statement.partition(" ")[::2])

    def _take(self, word: str, rest: str) -> None:
        name, _, text = rest.partition(" ")
        if word == "file":
            self._files[name.removesuffix(":")] = text.replace("\\n", "\n")
        elif word == "drbd":
            self._files[f"etc/drbd.d/{len(self._files)}.res"] = rest
        elif word == "replicated":
            for statement in _REPLICATED:
                self._take(*statement.replace("{name}", rest).partition(" ")[::2])
        elif word == "xml":
            self._elements.append((name, text))
        elif word == "level":
            self._levels.append(rest.split())
        elif word == "corosync":
            self._corosync.setdefault(name, {}).update(pair.partition("=")[::2] for pair in shlex.split(text))
        elif word == "without":
            for one in rest.split():
                self._crm.pop(one, None)
                self._corosync.pop(one, None)
        else:
            # A setting has no name, so its first word identifies it.
            self._crm[rest if "=" in name else name] = f"{word} {rest}"

    def texts(self) -> dict[str, str]:
        builder = read_crm("\n".join(self._crm.values()))
        for name, index, devices in self._levels:
            builder.level(name.partition("/")[0], index, [devices])
        cib = Xml.fromstring(builder.text)
        configuration = next(cib.iter("configuration"))
        for section, text in self._elements:
            found = configuration.find(section)
            parent = Xml.SubElement(configuration, section) if found is None else found
            parent.append(Xml.fromstring(text))
        return {
            "pacemaker/cib.xml": Xml.tostring(cib, "unicode"),
            "etc/corosync/corosync.conf": self._conf(),
            **self._files,
        }

    def _conf(self) -> str:
        nodes = [_section("node", pairs) for name, pairs in self._corosync.items() if name.startswith("node.")]
        inner = [
            _section(name, self._corosync[f"quorum.device.{name}"])
            for name in ("net", "heuristics")
            if f"quorum.device.{name}" in self._corosync
        ]
        device = self._corosync.get("quorum.device")
        quorum = _section("device", device, *inner) if device else ""
        top = [name for name in self._corosync if "." not in name and name != "quorum"]
        subsystem = self._corosync.get("logging.logger_subsys")
        return "".join(
            (
                *(_section(name, self._corosync[name]) for name in top),
                _section("logging", {}, _section("logger_subsys", subsystem)) if subsystem else "",
                _section("quorum", self._corosync.get("quorum", {}), quorum),
                _section("nodelist", {}, *nodes) if nodes else "",
            )
        )


def _section(name: str, pairs: Mapping[str, str], *inner: str) -> str:
    return "\n".join((f"{name} {{", *(f"{key}: {value}" for key, value in pairs.items() if value), *inner, "}\n"))
