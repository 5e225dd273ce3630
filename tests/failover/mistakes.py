"""How clear mistakes are planted, each alone in a good configuration: in our own plans, and in those of other styles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from failover.clusters import EXAMPLES, planned
from failover.styles import write
from failover.styles_files import ALL
from failover.styles_pairs import PAIR_STYLES
from failover.styles_shared import SHARED_STYLES

COROSYNC, CIB, TOML = "etc/corosync/corosync.conf", "pacemaker/cib.xml", "cluster.toml"
# In place of what becomes something else: the file is not there.
REMOVED = "removed"
TARGETS, CLIENTS = "lustre/make-targets.sh", "lustre/mount-clients.sh"
PAIR, BUSY, HOME = "tianhe2", "lustre-active-active", "nfs"
# Rule, base, file, then what becomes what.
Row = tuple[str, str, str, tuple[str, str]]


@dataclass(frozen=True)
class Planted:
    """``old`` (a regular expression) becomes ``new`` in a file of ``base``: the plan of an example, or a style. An empty ``old``: a new file."""

    rule: str
    base: str
    file: str
    old: str
    new: str

    def plant(self, directory: Path) -> Path:
        if self.base in EXAMPLES:
            planned(self.base, directory)
        else:
            write(ALL[self.base](), directory, 0o644 if self.base in {**PAIR_STYLES, **SHARED_STYLES} else 0o600)
        path = directory / self.file
        if self.old == REMOVED:
            path.unlink()
            return directory
        if not self.old:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.new)
            return directory
        text, times = re.subn(self.old, self.new, path.read_text(), count=0)
        assert times, f"{self.old} is not in {self.file} of {self.base}"
        path.write_text(text)
        return directory


def set_to(name: str, new: str, old: str = '[^"]*') -> tuple[str, str]:
    """Another value of an attribute in the CIB, wherever it is."""
    return rf'name="{name}" value="{old}"', f'name="{name}" value="{new}"'


def property_of_cluster(name: str, value: str) -> tuple[str, str]:
    return r"(<cluster_property_set [^>]*>)", rf'\1<nvpair id="planted" name="{name}" value="{value}"/>'


def device_value(device: str, name: str, value: str) -> tuple[str, str]:
    """One more value of one device, of our own plans and of the styles."""
    return (
        rf'(<primitive id="{device}".*?\n.*?<instance_attributes [^>]*>)',
        rf'\1<nvpair id="planted" name="{name}" value="{value}"/>',
    )


def operation(identity: str, name: str, change: str) -> tuple[str, str]:
    """Attributes of an operation of one primitive, in our own plans."""
    return rf'(<op id="{identity}-{name}-[^"]*" name="{name}" interval="[^"]*" )', rf"\1{change} "


def timeout(identity: str, name: str, value: str) -> tuple[str, str]:
    return rf'(<op id="{identity}-{name}-[^>]*timeout=)"[^"]*"', rf'\1"{value}"'


def meta(identity: str, tag: str, name: str, value: str) -> tuple[str, str]:
    block = f'<meta_attributes id="planted"><nvpair id="planted-1" name="{name}" value="{value}"/></meta_attributes>'
    return rf'(<{tag} id="{identity}"[^>]*>)', rf"\1{block}"


def constraint(text: str) -> tuple[str, str]:
    return "<constraints>", f"<constraints>{text}"


def moved(first: str, second: str) -> tuple[str, str]:
    """Two members of a group in the other order."""
    one, other = (rf'(<primitive id="{name}"(?:.|\n)*?</primitive>)' for name in (first, second))
    return one + r"((?:.|\n)*?)" + other, r"\3\2\1"


def planted(rows: Mapping[str, Row]) -> dict[str, Planted]:
    return {name: Planted(rule, base, file, *change) for name, (rule, base, file, change) in rows.items()}
