"""Read the configuration files of a cluster from a directory, or from the running cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache, partial
from html import escape
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.files import read_below, real_path
from strakes.base.toml_file import parse_toml
from strakes.failover.blocks import Block, Resource, read_corosync, read_drbd, resources_of
from strakes.failover.cib import Cib
from strakes.failover.cluster import Cluster, is_address
from strakes.failover.crm_text import PROMPT, expanded
from strakes.failover.description import described
from strakes.failover.facts import read_table
from strakes.failover.limits import ENDLESS, MOST_DEPTH, MOST_DIGITS, MOST_RESOURCES, little_enough
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.pcs_commands import corosync_of
from strakes.failover.plan import DESCRIPTION
from strakes.failover.source_kind import (
    CIB,
    COROSYNC,
    PCS_COMMANDS,
    SBD_FILES,
    SCRIPTS,
    STATEMENTS,
    built_cib,
    named_nodes,
    place_of_source,
)
from strakes.targets.answers import from_xml
from strakes.targets.command import Runner, run


@dataclass(frozen=True)
class Snapshot:
    """Predicted state of a cluster after an event. ``places``: (node, role) pairs of each resource.

    ``guests``: mapping of (resource, host) to (guest node that runs the resource on the host, container of this node).
    ``served``: mapping of target to the node that serves it, or to an empty text.
    """

    places: dict[str, tuple[tuple[str, str], ...]]
    fenced: tuple[str, ...] = ()
    unclean: tuple[str, ...] = ()  # nodes that could not be fenced
    restarted: tuple[str, ...] = ()
    unmanaged: frozenset[str] = frozenset()
    file: Path = Path()
    guests: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    served: dict[str, str] = field(default_factory=dict)

    def nodes_of(self, resource: str, role: str = "") -> frozenset[str]:
        """Return the nodes that run a resource, or those that run it in a given role."""
        return frozenset(node for node, own in self.places.get(resource, ()) if role in ("", own))


@dataclass(frozen=True)
class Behaviour:
    """Simulated states: with all nodes up, and after the death of each node."""

    steady: Snapshot
    without: dict[str, Snapshot]
    unanswered: int = 0


LIVE = "the running cluster"  # Name of the running cluster in messages.
_MOST_BYTES = 4 << 20  # Maximum total size of all files in bytes. 1,000 DRBD resources need half of this size.
# Prefixes of paths. A directory without any file at such a path holds no cluster configuration.
_SOURCES = ("pacemaker/", COROSYNC, "etc/drbd", "etc/ha.d/haresources", "etc/booth/", *SBD_FILES)
# Further files to recognise by their content. The last path is in reports of the tool sos.
_NEAR = ("drbd.d/*.res", "corosync/*", "etc/corosync/*", "etc/pacemaker/*", "var/lib/pacemaker/cib/cib.xml")
_MOST_FILES = 200  # Maximum number of files to recognise by their content.
# Maximum numbers of files and of nodes. Each node takes about 100 bytes for each file that all nodes have in common.
_MOST_PATHS, _MOST_NODES = 20_000, 100
LINKS = range(8)  # Corosync's transport knet has up to eight links.
_STATES = (
    ("crm_mon", "--one-shot", "--inactive", "--output-as=xml"),
    *(("corosync-cfgtool", "-s"), ("drbdsetup", "status"), ("cat", "/proc/drbd")),
)


@dataclass(frozen=True)
class Setup:
    """The parsed configuration files of a cluster. Missing parts are None or empty."""

    where: str
    root: Path
    cluster: Cluster | None = None
    corosync: Block = field(default_factory=partial(Block, ""))
    drbd: tuple[Resource, ...] = ()
    cib: Cib | None = None
    lustre: str = ""
    texts: dict[str, str] = field(default_factory=dict)  # path below ``root`` -> content
    behaviour: Behaviour | None = None
    nodes_assumed: bool = False  # True if no file lists the nodes.
    undefined: tuple[str, ...] = ()

    @property
    def pacemaker(self) -> Cib:
        """Return the CIB, which must exist."""
        assert self.cib is not None
        return self.cib

    @property
    def simulated(self) -> Behaviour:
        """Return the results of the simulations, which must exist."""
        assert self.behaviour is not None
        return self.behaviour

    @property
    def services(self) -> tuple[Primitive, ...]:
        """Return the resources in the CIB except fencing devices; empty without a CIB."""
        return self.cib.services if self.cib else ()

    @property
    def devices(self) -> tuple[Primitive, ...]:
        """Return the fencing devices in the CIB; empty without a CIB."""
        return self.cib.devices if self.cib else ()

    @property
    def is_fragment(self) -> bool:
        """Return whether the files are incomplete: they contain neither nodes nor fencing."""
        return self.nodes_assumed and not self.devices and "stonith-enabled" not in self.pacemaker.properties

    @property
    def is_heartbeat(self) -> bool:
        """Return whether Heartbeat manages the cluster by its own file haresources, without Pacemaker."""
        return "etc/ha.d/haresources" in self.texts and not self.corosync

    @property
    def mounts_on_both_nodes(self) -> bool:
        """Return whether a resource mounts a file system (GFS2, OCFS2) on several nodes at the same time."""
        return any(one.values.get("fstype") in ("gfs2", "ocfs2") for one in self.services)

    @property
    def keeps_data(self) -> bool:
        """Return whether data are damaged if two nodes run the same service."""
        kept = [one for one in self.services if one.keeps_data or one.agent in ("redis", "controld")]
        by_quorum = bool(self.drbd) and all(one.needs_majority for one in self.drbd)
        return any(not by_quorum or not (one.is_drbd or one.device.startswith("/dev/drbd")) for one in kept)

    @property
    def writes_on_both_nodes(self) -> bool:
        """Return whether several nodes may write to one disk, as for cluster file systems and VM migration."""
        return self.mounts_on_both_nodes or any(one.agent in ("VirtualDomain", "Xen") for one in self.services)

    def bare(self, name: str, marks: str = "#") -> str:
        """Return the text of a file without comments. ``marks``: characters that begin a comment."""
        return re.sub(rf"(?m)[{marks}].*$", "", self.texts.get(name, ""))

    def settings_of(self, *names: str) -> dict[str, str]:
        """Return key -> value of the ``KEY=value`` lines in the first existing file of ``names``."""
        text = next((self.texts[name] for name in names if name in self.texts), "")
        pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
        return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}

    @cached_property
    def sbd(self) -> dict[str, str]:
        """Return name -> value of the settings of sbd."""
        return self.settings_of(*sorted(SBD_FILES, reverse=True))

    @property
    def lustre_parameters(self) -> str:
        """Return the arguments of ``lctl set_param`` and ``conf_param`` in scripts."""
        scripts = "\n".join(self.texts.get(name, "") for name in ("lustre/parameters.sh", "etc/rc.local"))
        lines = re.findall(r"(?m)^[^#\n]*\blctl\s+(?:set|conf)_param\s+([^#\n]*)", scripts)
        return re.sub(r"(?<![\w.])(?=timeout=)", "sys.", "\n".join(lines))

    @cached_property
    def modules(self) -> str:
        """Return the text of all files in /etc/modprobe.d."""
        return "\n".join(text for name, text in self.texts.items() if name.startswith("etc/modprobe.d/"))

    @cached_property
    def sysctl(self) -> dict[str, str]:
        """Return name -> value of the kernel settings. The last file takes precedence."""
        found = dict[str, str]()
        for name in sorted(self.texts, key=lambda name: (name == "etc/sysctl.conf", name)):
            if name.startswith("etc/sysctl"):
                found |= {key.lstrip("-").replace("/", "."): value for key, value in self.settings_of(name).items()}
        return found

    @cached_property
    def units(self) -> dict[str, str]:
        """Return the unit files of systemd: path below /etc/systemd/system -> content."""
        head = "etc/systemd/system/"
        return {name.removeprefix(head): text for name, text in self.texts.items() if name.startswith(head)}

    @property
    def node_names(self) -> tuple[str, ...]:
        """Return the names of all nodes in the CIB and in corosync.conf."""
        named = [node.get("name") for node in nodes_of(self)]
        return tuple(dict.fromkeys(name for name in (*(self.cib.nodes if self.cib else ()), *named) if name))

    @property
    def members(self) -> tuple[str, ...]:
        """Return the names of the nodes that run Corosync: all but remote nodes."""
        remote = set(self.cib.nodes) - set(self.cib.members_of_corosync) if self.cib else set[str]()
        return tuple(name for name in self.node_names if name not in remote)

    @cached_property
    def parts(self) -> frozenset[str]:
        """Return the names of the parts that are present, such as "pacemaker" if there is a CIB."""
        there = {
            "description": self.cluster,
            "corosync": self.corosync,
            "drbd": self.drbd,
            "pacemaker": self.cib,
            "lustre": self.lustre,
            "mounting": self.texts.get("lustre/mount-clients.sh", ""),
            "sbd": self.sbd,
            "behaviour": self.behaviour,
            "state": "state/crm_mon" in self.texts,
            "hosts": self.texts.get("etc/hosts", ""),
            "statements": self.texts.keys() & STATEMENTS.keys(),
        }
        return frozenset(name for name, part in there.items() if part)


def nodes_of(setup: Setup) -> list[Block]:
    """Return the node sections of corosync.conf."""
    return setup.corosync.one("nodelist").all("node")


def links_of(node: Block) -> dict[int, str]:
    """Return link number -> address for a node section of corosync.conf."""
    return {number: address for number in LINKS if (address := node.get(f"ring{number}_addr"))}


def name_of(node: Block) -> str:
    """Return the name of a node in corosync.conf, or its host name on link 0, or an empty text."""
    first = links_of(node).get(0, "")
    return node.get("name") or ("" if is_address(first) else first)


def hosts_of(setup: Setup) -> Mapping[str, str]:
    """Return host name -> address from /etc/hosts."""
    return _hosts_in(setup.texts.get("etc/hosts", ""))


@lru_cache  # Rules ask for each link of each resource.
def _hosts_in(text: str) -> Mapping[str, str]:
    found = dict[str, str]()
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        found |= {name: address for name in names if name not in found}
    return found


def files_of_nodes(setup: Setup) -> dict[str, dict[str, str]]:
    """Return node -> path -> text of a file. Files in nodes/NODE replace common files, which have the node ""."""
    common = {name: text for name, text in setup.texts.items() if not name.startswith("nodes/")}
    found = {"": common}
    for name, text in setup.texts.items():
        if name.startswith("nodes/"):
            _, node, file = name.split("/", 2)
            found.setdefault(node, dict(common))[file] = text
    return found


def views_of_nodes(setup: Setup) -> dict[str, Setup]:
    """Return node -> configuration in which the node's files replace common files. Nodes without files are absent."""
    own = [(node, files) for node, files in files_of_nodes(setup).items() if node]
    views = {node: setup_of(setup.where, setup.root, files, setup.cluster) for node, files in own}
    return {node: replace(view, behaviour=setup.behaviour) for node, view in views.items()}


def read_plan(directory: Path) -> Setup:
    """Read a plan or other files of a cluster. Raises BadInputError for missing or unreadable files."""
    with little_enough(str(directory)), _readable(directory):
        return _read_plan(directory)


@contextmanager
def _readable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where, why = str(error.filename or directory), error.strerror or str(error)
        denied, usual = "Run the command as root.", "Give the directory of a plan, or a file of one."
        remedy = denied if isinstance(error, PermissionError) else usual
        raise BadInputError("the configuration cannot be read", where=where, why=why, remedy=remedy) from error


def _read_plan(directory: Path) -> Setup:
    denied = list[str]()
    if directory.is_file():
        (texts, left), root = _sources([directory], {}), directory.parent
    else:
        (texts, denied), root = _read_texts(directory, planned=True), directory
        near = [*directory.iterdir(), *(path for pattern in _NEAR for path in _matching(directory, pattern, denied))]
        near = [path for path in near if not path.is_symlink() and path.suffix not in (".toml", ".md")]
        found, left = _sources(sorted(near)[:_MOST_FILES], texts)
        texts = found | texts
    if not any(name.startswith(_SOURCES) for name in texts):
        # If all files are below nodes/, use the files of the first node as common files.
        own = sorted((name.split("/", 2)[2], name) for name in texts if name.startswith("nodes/"))
        texts |= {name: texts[path] for name, path in reversed(own) if name.startswith(_SOURCES)}
    if not any(name.startswith(_SOURCES) for name in texts):
        inner = sorted(path.name for path in directory.glob("*/"))[:5]
        why = "it contains no CIB, crm or pcs commands, pcs config output, corosync.conf, DRBD files or haresources"
        remedy = "Give the files of a node (etc/, pacemaker/cib.xml), or generate files: strakes failover plan."
        remedy = f"Give one of the subdirectories: {', '.join(inner)}." if inner else remedy
        raise BadInputError("there is no cluster configuration", where=str(directory), why=why, remedy=remedy)
    cluster = None
    if (root / DESCRIPTION).is_file():
        content = read_below(root, DESCRIPTION, _MOST_BYTES).decode(errors="replace")
        cluster = described(parse_toml(content, str(root / DESCRIPTION), "the description"))
    # In messages, "the running cluster" means the live cluster. A directory of this name gets the prefix "./".
    where = f"./{directory}" if str(directory) == LIVE else str(directory)
    setup = setup_of(where, root, texts, cluster)
    return replace(setup, undefined=(*setup.undefined, *left, *map(_DENIED.format, denied)))


def _sources(paths: Iterable[Path], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    texts, names = dict[str, str](), dict[str, list[str]]()
    for path in paths:
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            text = read_below(path.parent, path.name, _MOST_BYTES).decode(errors="replace")
            text = PROMPT.sub("", text)
            if all(line[:6] in ("", "# pcs ", "# crm ") for line in text.splitlines()):  # In manuals, # is a prompt.
                text = text.replace("\n# ", "\n").removeprefix("# ")
            if (place := place_of_source(path.name, text)) and place not in known:
                names.setdefault(place, []).append(path.name)
                texts[place] = f"{texts[place]}\n{text}" if place in SCRIPTS and place in texts else text
    others = [place for place in STATEMENTS if place in texts][1:] if CIB not in texts else []
    left = [name for place, own in names.items() if place not in SCRIPTS for name in own[:-1]]
    return texts, [f"{name} is not read" for name in (*left, *(name for place in others for name in names[place]))]


def read_live(runner: Runner = run, root: Path = Path("/")) -> Setup:
    """Read the configuration of the running cluster. Raises EnvironmentLacksError if this machine is not a node."""
    with _readable(root):
        texts, denied = _read_texts(root, planned=False)
    if "etc/corosync/corosync.conf" not in texts:
        what, file = "this machine is not a node of a cluster", str(root / "etc/corosync/corosync.conf")
        remedy = "Run this command on a node, or check a plan: strakes failover check DIR"
        raise EnvironmentLacksError(what, where=file, why="the file does not exist", remedy=remedy)
    asked = runner(["cibadmin", "--query"], 30.0)
    if asked.status != 0:
        why = asked.stderr.strip() or f"exit status {asked.status}"
        remedy = "Start Pacemaker (systemctl start pacemaker), or check a plan: strakes failover check DIR"
        raise EnvironmentLacksError("Pacemaker does not answer", where="cibadmin --query", why=why, remedy=remedy)
    setup = setup_of(LIVE, root, {**texts, "pacemaker/cib.xml": asked.stdout, **_states(runner)}, None)
    return replace(setup, undefined=tuple(map(_DENIED.format, denied)))


def _states(runner: Runner) -> dict[str, str]:
    answers = {}
    for program, *words in _STATES:
        with suppress(StrakesError):
            answer = runner([program, *words], 30.0)
            if answer.status == 0 and (program != "crm_mon" or from_xml(answer.stdout, program).findall("nodes")):
                answers[f"state/{program}"] = answer.stdout
    return answers


def setup_of(where: str, root: Path, texts: dict[str, str], cluster: Cluster | None) -> Setup:
    """Return the parsed files of a cluster. ``texts``: path below ``root`` -> text. Raises BadInputError."""
    cib, cib_file = texts.get("pacemaker/cib.xml"), str(root / "pacemaker/cib.xml")
    built = built_cib(texts) if cib is None else None
    nodes_assumed = bool(built and built[1].nodes_assumed)
    if cib and (empty := re.search(r"<nodes\s*(/>|>\s*</nodes>)", cib)):
        names, nodes_assumed = named_nodes(cib, texts)
        nodes = "".join(f'<node id="{name}" uname="{name}"/>' for name in map(escape, names))
        cib = cib.replace(empty[0], f"<nodes>{nodes}</nodes>")
    if built:
        cib_file, cib = str(root / built[0]), built[1].text
        texts = {**texts, "pacemaker/cib.xml": cib}
    commands = expanded(texts.get(PCS_COMMANDS, "")).replace('"', "")
    if sbd := re.search(r"(?m)\bpcs[ \t]+stonith[ \t]+sbd[ \t]+enable\b(.*)$", commands):
        disks = ";".join(re.findall(r"\bdevice=(\S+)", sbd[1]))
        waits = re.findall(r"\bsbd[ \t]+device[ \t]+setup\b.*?\b(msgwait-timeout=\d+)", commands)
        given = [word for word in sbd[1].split() if word.startswith("SBD_")] + waits[:1]
        given += [f"SBD_DEVICE={disks}"] if disks else []
        sysconfig = ["SBD_PACEMAKER=yes", "SBD_WATCHDOG_DEV=/dev/watchdog", *given]
        texts = {"etc/sysconfig/sbd": "\n".join(sysconfig), **texts}
    if COROSYNC not in texts and (written := corosync_of(commands)):
        texts = {COROSYNC: written, **texts}
    drbd = [read_drbd(text, str(root / name)) for name, text in texts.items() if name.startswith("etc/drbd")]
    resources = resources_of(drbd)
    if len(resources) > MOST_RESOURCES:
        why = f"the files have more than {MOST_RESOURCES} resources"
        raise BadInputError("this configuration cannot be checked", where=str(root / "etc/drbd.d"), why=why)
    return Setup(
        where=where,
        root=root,
        cluster=cluster,
        corosync=read_corosync(texts.get(COROSYNC, ""), str(root / COROSYNC)),
        drbd=resources,
        cib=Cib(cib, cib_file) if cib is not None else None,
        lustre=texts.get("lustre/make-targets.sh", ""),
        texts=texts,
        nodes_assumed=nodes_assumed,
        undefined=tuple(built[1].undefined) if built else (),
    )


def _read_texts(root: Path, *, planned: bool) -> tuple[dict[str, str], list[str]]:
    left, denied = _MOST_BYTES, list[str]()
    texts = {str(path.relative_to(root)): "" for path in _switched_on(root / "etc/systemd/system")}
    names = _names_below(root, denied, planned=planned)
    nodes = {name.split("/")[1] for name in names if name.startswith("nodes/")}
    if len(names) + len(texts) > _MOST_PATHS or len(nodes) > _MOST_NODES:
        why = f"it has more than {_MOST_PATHS} files or {_MOST_NODES} nodes"
        raise BadInputError("this is not a configuration", where=str(root), why=why)
    for name in names:
        try:
            content = read_below(root, name, _MOST_BYTES)
        except BadInputError as error:
            # Skip an unreadable file with secrets, because users of Pacemaker may lack the right to read it.
            if isinstance(error.__cause__, PermissionError) and _WITH_SECRETS.fullmatch(name):
                denied.append(name)
            elif not isinstance(error.__cause__, FileNotFoundError):
                raise
            continue
        left -= len(content)
        text = content.decode(errors="replace")
        texts[name] = _SECRETS.sub("", text) if _WITH_SECRETS.fullmatch(name) else text
        why = f"together with the files before, it is larger than {_MOST_BYTES >> 20} MiB" if left < 0 else ""
        if number := ENDLESS.search(texts[name]):
            why = f"a number begins with {number[0][:20]} and has more than {MOST_DIGITS} digits"
        if "\0" in texts[name] and name.endswith((".conf", ".res", ".xml", ".yaml")):
            why = "it contains zero bytes, so it is damaged or in UTF-16"
        if why:
            raise BadInputError("this is not a configuration", where=str(root / name), why=why)
    return texts, denied


# Lines with passwords or keys of networks.
_SECRETS = re.compile(r"(?im)^[ \t]*(?=[]\w.[-]*(psk|password|passphrase|secret|private-key))[]\w.[-]*+\s*+[=:].*$")
_WITH_SECRETS = re.compile(
    r"(nodes/[^/]+/)?(etc/(NetworkManager/system-connections|netplan|network|sysconfig/network(-scripts)?)|var/spool/cron)/.*"
)
_DENIED = "{} is not read (permission denied)"


def _names_below(root: Path, denied: list[str], *, planned: bool) -> list[str]:
    nodes = [path / "etc" for path in _inside(root, root / "nodes", denied)]
    for directory in (root / "etc", *nodes):
        if not real_path(directory).is_relative_to(real_path(root)):
            raise BadInputError("a link leads out of the checked directory", where=str(directory))
    below = {key: text.split() for key, text in read_table("options/node_files").items()}
    found = [f"etc/{name}" for name in below["names"]]
    if planned:
        found += ["pacemaker/cib.xml", *map("lustre/{}.sh".format, ("make-targets", "mount-clients", "parameters"))]
    paths = [path for one in below["patterns"] for path in _matching(root, f"etc/{one}", denied) if path.is_file()]
    for _ in range(MOST_DEPTH):
        inside = [path for directory in nodes for path in _inside(root, directory, denied)]
        paths += [path for path in inside if path.is_file()]
        nodes = [path for path in inside if path.is_dir() and not path.is_symlink()]
    if nodes:
        raise BadInputError(f"directories are nested more than {MOST_DEPTH} deep", where=str(root / "nodes"))
    found += sorted(str(path.relative_to(root)) for path in paths)
    return list(dict.fromkeys([*found, "var/spool/cron/root", "var/spool/cron/crontabs/root"]))


def _matching(root: Path, pattern: str, denied: list[str]) -> list[Path]:
    found = [root]
    for part in pattern.split("/"):
        if re.search(r"[*\[]", part):
            found = [path for directory in found for path in _inside(root, directory, denied, part)]
        else:
            found = [directory / part for directory in found]
    return found


def _inside(root: Path, directory: Path, denied: list[str], pattern: str = "*") -> list[Path]:
    """Return the paths in a directory, which may be missing, whose names match a pattern.

    Adds a directory of secrets that denies access to ``denied``. Raises OSError for others, in contrast to Path.glob().
    """
    try:
        return [path for path in directory.iterdir() if fnmatchcase(path.name, pattern)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        name = str(directory.relative_to(root))
        if not _WITH_SECRETS.fullmatch(f"{name}/"):
            raise
        denied.append(name)
        return []


def _switched_on(units: Path) -> Iterator[Path]:
    """Yield the symbolic links that enable or mask systemd units."""
    yield from (path for kind in ("wants", "requires") for path in _matching(units, f"*.{kind}/*", []))
    masks = (path for path in _matching(units, "*.*", []) if path.is_symlink())
    yield from (path for path in masks if str(path.readlink()) == "/dev/null")
