"""Parsers of pcs commands, and of the output of ``pcs config``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, takewhile

from strakes.failover.cib_builder import CibBuilder, Words, read_words, times_of
from strakes.failover.crm_text import joined_lines, settings_reader, split_words, terms_of
from strakes.failover.known_options import slip

COMMAND = re.compile(r"(?m)^[^#\n]*\bpcs\s+(?:-\S+\s+\S+\s+)?(?:resource|stonith|property|constraint|cluster)\s")
_BLOCKS = ("op", "meta", "clone", "promotable", "master", "bundle")
_ROLES = ("master", "promoted", "slave", "unpromoted", "started")
_ASSUMED = "assumed"  # Marks monitor operations that are assumed for unknown agents.
_ACTIONS = ("start", "stop", "promote", "demote")
_TOTEM_OF_PCS = "transport: knet\ncrypto_cipher: aes256\ncrypto_hash: sha256\n"
_ENDS_OF_NODES = ("transport", "totem", "quorum")
_FLAGS = ("--force", "--skip-offline", "--debug", "--start", "--enable", "--wait", "--all", "--")
_POSITIONS = {"group", "before", "after"}  # Words of ``resource create`` that take a value.


def read_pcs_commands(text: str) -> CibBuilder:
    """Return the CIB that a list of pcs commands creates. Other commands are ignored."""
    builder = CibBuilder()
    for words in _commands(text):
        for length in (3, 2, 1):
            reader = _READERS.get(" ".join(words[:length]))
            if reader and len(words) > length:
                with suppress(ValueError, IndexError):
                    reader(builder, words[length:])
                break
        else:
            if name := slip(" ".join(words[:2]), _READERS):
                builder.undefined.append(f"pcs {' '.join(words[:2])} may mean {name}")
    return builder


def corosync_of(text: str) -> str:
    """Return the corosync.conf that ``pcs cluster setup`` of pcs 0.10 writes, or an empty text."""
    cluster, nodes = "", list[list[str]]()
    for words in _commands(text):
        if words[:2] == ["cluster", "setup"] and "--name" not in words and not nodes:
            cluster = "".join(words[2:3])
        elif words[:3] != ["cluster", "node", "add"] or not nodes:
            continue
        for word in takewhile(lambda word: word not in _ENDS_OF_NODES, words[3:]):
            if word.startswith("addr=") and nodes:
                nodes[-1].append(word.removeprefix("addr="))
            elif not word.startswith("--") and "=" not in word and "[" not in word:
                nodes.append([word])
    sections = [f"totem {{\nversion: 2\ncluster_name: {cluster}\n{_TOTEM_OF_PCS}}}\nnodelist {{"]
    for number, (name, *links) in enumerate(nodes, 1):
        addresses = "\n".join(f"ring{link}_addr: {address}" for link, address in enumerate(links or [name]))
        sections.append(f"node {{\n{addresses}\nname: {name}\nnodeid: {number}\n}}")
    two_node = "two_node: 1\n" if len(nodes) == 2 else ""
    return "\n".join([*sections, f"}}\nquorum {{\nprovider: corosync_votequorum\n{two_node}}}\n"]) if nodes else ""


def _commands(text: str) -> Iterator[list[str]]:
    for line in joined_lines(text):
        words = split_words(line)
        while "pcs" in words:
            words = words[words.index("pcs") + 1 :]
            end = next((place for place, word in enumerate(words) if word in ("&&", ";", "|", "||", "pcs")), len(words))
            own = [word for word in words[:end] if word not in _FLAGS and not word.startswith("--wait=")]
            yield own[2:] if own[:1] == ["-f"] else own


def _setup(builder: CibBuilder, words: list[str]) -> None:
    place = words.index("--name") if "--name" in words else -1
    words = words[: max(place, 0)] + words[place + 2 :]
    for word in takewhile(lambda word: word not in _ENDS_OF_NODES and not word.startswith("--"), words):
        if "=" not in word and "[" not in word:
            builder.node(word.partition(",")[0])


def _add_remote(builder: CibBuilder, words: list[str]) -> None:
    address = [f"server={word}" for word in words[1:2] if "=" not in word and word not in _BLOCKS]
    _create(builder, [words[0], "ocf:pacemaker:remote", *address, *words[1 + len(address) :]])


def _placed(words: list[str]) -> tuple[list[str], dict[str, str]]:
    placed = {word.lstrip("-"): after for word, after in pairwise(words) if word.lstrip("-") in _POSITIONS}
    kept = (word for before, word in pairwise(["", *words]) if before.lstrip("-") not in placed)
    return [word for word in kept if word.lstrip("-") not in placed], placed


def _create(builder: CibBuilder, words: list[str], standard: str = "") -> None:
    words, placed = _placed([part for word in words for part in re.split("(?<=^--group)=", word)])
    group = placed.pop("group", "")
    short = [word[2:] for word in words if word in ("--clone", "--master")]
    words = [word[2:] if word in ("--clone", "--master") else word for word in words]
    # Remove the optional word meta, as in "clone meta notify=true".
    cloned = next((place for place, word in enumerate(words) if word in ("clone", "promotable")), len(words))
    words = words[:cloned] + [word for word in words[cloned:] if word != "meta"]
    identity, agent, *rest = [word for word in words if not word.startswith("--")] + [""]
    if agent in ("fence_scsi", "fence_mpath") and not any(word.startswith("provides=") for word in rest):
        rest += ["meta", "provides=unfencing"]  # pcs copies provides=unfencing from the metadata of these agents.
    read = read_words(filter(None, rest), _BLOCKS)
    if builder.find(identity) is not None and "$" not in identity:
        builder.undefined.append(f"{identity} is created twice")
        return
    builder.undefined += [f"{identity} has {word} without a value" for word in read.plain if "$" not in word]
    element = builder.primitive(identity, agent, read, standard=standard)
    for operation in element.iterfind("./operations/op[@name='monitor'][@interval='0s']"):
        operation.set("interval", "60s")
    if all(name != "monitor" for kind, name, _ in read.blocks if kind == "op"):
        for settings in _default_monitors(element.attrib):
            builder.operation(element, "monitor", settings)
    if "--no-default-ops" not in words:
        builder.advised_operations(element)
    if group:
        builder.group(group, [identity], {}, placed)
    for kind, name, meta in read.blocks:
        if kind in ("clone", "promotable", "master", "bundle"):
            own = read.block("meta") | dict(meta) if kind in short else meta
            called = name or f"{identity}-{'master' if kind == 'master' else 'clone'}"
            _add_clone(builder, called, identity, own, promotable=kind in ("promotable", "master"))


def _add_clone(builder: CibBuilder, name: str, member: str, meta: Mapping[str, str], *, promotable: bool) -> None:
    element = builder.find(member)
    if promotable and element is not None and element.find(f"./operations/op[@description='{_ASSUMED}']") is not None:
        builder.operation(element, "monitor", {"interval": "59s", "role": "Promoted", "description": _ASSUMED})
    builder.clone(name, member, meta, promotable=promotable)
    builder.change_id(member, name)


def _default_monitors(agent: Mapping[str, str]) -> Iterator[dict[str, str]]:
    times = times_of(agent)
    # Most agents advise a monitor interval of 10 s. If an agent advises none, pcs uses 60 s.
    monitor = {"interval": "10s"} if times else {"interval": "60s", "description": _ASSUMED}
    if "monitor" in times:
        monitor["timeout"] = f"{times['monitor']:g}s"
    yield monitor | ({"role": "Promoted"} if "promote" in times else {})
    others = [{"interval": "20s", "role": "Unpromoted"}, {"interval": "30s"}][: 1 if agent.get("type") == "drbd" else 2]
    yield from (monitor | other for other in others if "promote" in times)


def _ticket(builder: CibBuilder, words: list[str]) -> None:
    read = read_words(words, ())
    role = {"rsc-role": read.plain[1].capitalize()} if len(read.plain) > 2 else {}
    given = {"ticket": read.plain[0], "rsc": read.plain[-1], **role, **read.settings}
    builder.constraint("rsc_ticket", given.pop("id", ""), given)


def _bundle(builder: CibBuilder, words: list[str]) -> None:
    copies = [word.partition("=")[2] for word in words if re.match(r"(promoted-max|masters)=[1-9]", word)]
    meta = [f"promoted-max={copies[0]}", "promotable=true"] if copies else []
    _create(builder, [f"{words[0]}-container", "Dummy", "clone", words[0], *meta])


def _clone(builder: CibBuilder, words: list[str], *, promotable: bool = False) -> None:
    read = read_words([word for word in words if word != "meta"], ())
    name = read.plain[1] if len(read.plain) > 1 else f"{read.plain[0]}-clone"
    _add_clone(builder, name, read.plain[0], read.settings, promotable=promotable)


def _master(builder: CibBuilder, words: list[str]) -> None:
    plain, settings = [word for word in words if "=" not in word and word != "meta"], [w for w in words if "=" in w]
    _clone(builder, [plain[-1], *(plain[:-1] or [f"{plain[-1]}-master"]), *settings], promotable=True)


def _update(builder: CibBuilder, words: list[str]) -> None:
    read = read_words(words[1:], _BLOCKS)
    given = {name for kind, name, _ in read.blocks if kind == "op"}
    element = builder.find(words[0])
    for operations in element.findall("./operations") if element is not None else ():
        operations[:] = [one for one in operations if one.get("name") not in given]
    builder.change(words[0], read)


def _enable(builder: CibBuilder, words: list[str], role: str) -> None:
    for element in filter(None, map(builder.find, words)):
        # pcs enables or disables a clone together with its resource.
        for one in [element, *element] if element.tag == "clone" else [element]:
            builder.change(one.get("id", ""), Words((), {}, (("meta", "", {"target-role": role}),)))


def add_location(builder: CibBuilder, words: list[str]) -> None:
    """Add the constraints of ``constraint location RESOURCE prefers|avoids NODE=SCORE`` or ``RESOURCE rule ...``."""
    resource, *rest = words
    if resource == "add" and len(rest) > 2:
        read = read_words(rest, ())
        identity, name, node, score = (*read.plain, "INFINITY")[:4]
        builder.constraint("rsc_location", identity, {"rsc": name, "node": node, "score": score, **read.settings})
    elif rest[:1] == ["rule"]:
        read = read_words(rest[1:], ())
        constraint = builder.constraint("rsc_location", "", {"rsc": resource})
        operator, given = "or" if "or" in read.plain else "and", read.settings
        score = given.get("score", given.get("score-attribute", "INFINITY"))
        builder.rule(constraint, score, terms_of(rest[1:]), operator, read.settings.get("role", ""))
    elif rest[:1] in (["prefers"], ["avoids"]):
        sign = "-" if rest[0] == "avoids" else ""
        for word in rest[1:]:
            node, _, score = word.partition("=")
            given = {"rsc": resource, "node": node, "score": f"{sign}{score or 'INFINITY'}"}
            builder.constraint("rsc_location", "", given)


def add_colocation(builder: CibBuilder, words: list[str]) -> None:
    """Add the constraint of ``constraint colocation add [ROLE] RESOURCE with [ROLE] RESOURCE [SCORE]``."""
    read = read_words(words, ())
    place = read.plain.index("with")
    score, ends = read.settings.get("score", "INFINITY"), list[tuple[str, str]]()
    for half, key in ((read.plain[:place], "rsc-role"), (read.plain[place + 1 :], "with-rsc-role")):
        names = [word for word in half if not re.fullmatch(r"[+-]?(\d+|INFINITY)", word)]
        score = next((word for word in half if word not in names), score)
        role = names[0].capitalize() if len(names) > 1 and names[0].lower() in _ROLES else ""
        ends.append((names[1 if role else 0], read.settings.get(key) or role))
    builder.colocation(read.settings.get("id", ""), ends[0], ends[1], score)


def add_order(builder: CibBuilder, words: list[str]) -> None:
    """Add the constraint of ``constraint order [ACTION] RESOURCE then [ACTION] RESOURCE``."""
    read = read_words(words, ())
    halves = [half.split() for half in " ".join(read.plain).split(" then ")]
    # Without a second action, pcs writes "start", whereas Pacemaker would repeat the first action.
    ends = [(half[1], half[0]) if half[0] in _ACTIONS and len(half) > 1 else (half[0], "start") for half in halves]
    options = {key: value for key, value in read.settings.items() if key in ("kind", "symmetrical")}
    for first, then in pairwise(ends):
        builder.order(read.settings.get("id", ""), first, then, options)


def _sets(tag: str) -> Callable[[CibBuilder, list[str]], None]:
    def read(builder: CibBuilder, words: list[str]) -> None:
        head, *rest = " ".join(words).split(" setoptions ")
        options = read_words(rest[0].split() if rest else [], ()).settings
        constraint = builder.constraint(tag, options.get("id", ""), {k: v for k, v in options.items() if k != "id"})
        for text in re.split(r"(?:^| )set ", head):
            row = read_words(text.split(), ())
            if row.plain:
                builder.resource_set(constraint, row.plain, row.settings)

    return read


_READERS: dict[str, Callable[[CibBuilder, list[str]], None]] = {
    "cluster setup": _setup,
    "cluster node add": lambda builder, words: builder.node(words[0].partition(",")[0]),
    "cluster node add-remote": _add_remote,
    "cluster node add-guest": lambda to, words: _update(to, [words[1], "meta", f"remote-node={words[0]}", *words[2:]]),
    "property set": settings_reader("crm_config"),
    "property": settings_reader("crm_config"),
    "resource defaults update": settings_reader("rsc_defaults"),
    "resource defaults": settings_reader("rsc_defaults"),
    "resource op defaults": settings_reader("op_defaults"),
    "resource create": _create,
    "resource group add": lambda to, words: to.group((own := _placed(words))[0][0], own[0][1:], {}, own[1]),
    "resource bundle create": _bundle,
    "constraint ticket add": _ticket,
    "resource clone": _clone,
    "resource promotable": partial(_clone, promotable=True),
    "resource master": _master,
    "resource update": _update,
    "resource enable": partial(_enable, role="Started"),
    "resource disable": partial(_enable, role="Stopped"),
    "stonith update": _update,
    "resource meta": lambda builder, words: _update(builder, [words[0], "meta", *words[1:]]),
    "resource op add": lambda builder, words: builder.change(words[0], read_words(["op", *words[1:]], _BLOCKS)),
    "stonith create": partial(_create, standard="stonith"),
    "stonith level add": lambda builder, words: builder.level(words[1], words[0], ",".join(words[2:]).split(",")),
    "node attribute": lambda builder, words: builder.node(words[0], dict(word.split("=", 1) for word in words[1:])),
    "stonith sbd": lambda builder, words: builder.properties({"have-watchdog": str(words[0] == "enable").lower()}),
    "constraint location": add_location,
    "constraint colocation add": add_colocation,
    "constraint colocation set": _sets("rsc_colocation"),
    "constraint order set": _sets("rsc_order"),
    "constraint order": add_order,
}


HEADS = re.compile(
    r"(?m)^(?:(?:Stonith Devices|Pacemaker Nodes|Fencing Levels|Cluster Properties):|[ \t]*Resource: \S+ \(class=)"
)
_RESOURCE = re.compile(r"Resource: (\S+) \(class=(\S+?)(?: provider=(\S+?))? type=(\S+?)\)")
_KINDS = ("Resource", "Group", "Clone", "Master", "Bundle")
_OPTION = re.compile(r"\(([\w-]+):([^()]*)\)")


@dataclass
class _Line:
    text: str
    children: list[_Line] = field(default_factory=list)

    def all(self, head: str) -> Iterator[_Line]:
        return (child for child in self.children if child.text.startswith(head))


def read_pcs_config(text: str) -> CibBuilder:
    """Return the CIB that the output of ``pcs config`` describes."""
    builder = CibBuilder()
    for section in _tree(text).children:
        head, _, rest = section.text.partition(":")
        if head == "Pacemaker Nodes":
            for name in (rest + " " + " ".join(child.text for child in section.children)).split():
                builder.node(name)
        elif head in ("Resources", "Stonith Devices"):
            for child in section.children:
                _resource(builder, child)
        elif head in _KINDS:
            _resource(builder, section)  # pcs stonith show and pcs resource show print no headings above resources.
        elif head == "Fencing Levels":
            _levels(builder, section)
        elif head == "Cluster Properties":
            _settings(builder, section, "crm_config")
        elif head in ("Resources Defaults", "Operations Defaults"):
            _settings(builder, section, "rsc_defaults" if head.startswith("R") else "op_defaults")
        elif head.endswith("Constraints"):
            for child in section.children:
                with suppress(ValueError, IndexError):
                    _constraint(builder, head.split()[0], child)
    return builder


def _tree(text: str) -> _Line:
    top = _Line("")
    stack = [(-1, top)]
    for raw in text.splitlines():
        if not raw.strip():
            continue
        indent = len(raw) - len(raw.lstrip())
        while stack[-1][0] >= indent:
            stack.pop()
        line = _Line(raw.strip())
        stack[-1][1].children.append(line)
        stack.append((indent, line))
    return top


# pcs prints quotes only around values with a blank or =. Other quotes belong to the value.
_OWN_QUOTES = re.compile(r"""\b(pcmk_host_\w+=)("[^"\s=]*")""")


def _pairs(line: _Line) -> dict[str, str]:
    texts = [line.text.partition(":")[2], *(child.text for child in line.children)]
    texts = [_OWN_QUOTES.sub(r"\1'\2'", text) for text in texts]
    return {key: value for text in texts for key, value in read_words(split_words(text), ()).settings.items()}


def _below(line: _Line, head: str) -> dict[str, str]:
    return {key: value for child in line.all(head) for key, value in _pairs(child).items()}


def _resource(builder: CibBuilder, line: _Line) -> list[str]:
    kind, _, rest = line.text.partition(": ")
    identity = rest.split()[0] if rest.split() else ""
    if found := _RESOURCE.match(line.text):
        agent = ":".join(filter(None, found.group(2, 3, 4)))
        words = Words((), _below(line, "Attributes:"), (("meta", "", _below(line, "Meta Attr")),))
        element = builder.primitive(identity, agent, words)
        for child in line.all("Operations:"):
            for name, pairs in _operations(child):
                builder.operation(element, name, pairs)
        return [identity]
    if kind not in _KINDS:
        return []
    members = [name for child in line.children for name in _resource(builder, child)]
    container = _below(line, "Docker:") | _below(line, "Podman:")
    promoted = container.get("promoted-max") or container.get("masters", "")
    if kind == "Group":
        builder.group(identity, members, _below(line, "Meta Attr"))
        return [identity]
    if not members:
        words = Words((), {}, (("op", "monitor", {"interval": "60s"}),))
        members = [builder.primitive(f"{identity}-container", "ocf:heartbeat:Dummy", words).get("id", "")]
    meta = _below(line, "Meta Attr") | ({"promoted-max": promoted} if promoted else {})
    builder.clone(identity, members[0], meta, promotable=kind == "Master" or bool(promoted))
    return [identity]


def _operations(line: _Line) -> Iterator[tuple[str, dict[str, str]]]:
    for child in (_Line(line.text.partition(":")[2].strip()), *line.children):
        name, _, rest = child.text.partition(" ")
        if name:
            body = re.sub(r"\([^()]*\)", "", rest) if not name.endswith(":") else ""
            pairs = read_words(split_words(body), ()).settings | _pairs(_Line("", child.children))
            yield name.rstrip(":"), pairs


def _levels(builder: CibBuilder, section: _Line) -> None:
    for target in section.children:
        name = target.text.partition(": ")[2] or target.text
        for child in target.children:
            if found := re.match(r"Level (\d+)(?:: | - )?\s*(.*)", child.text):
                names = found[2] or " ".join(inner.text for inner in child.children)
                builder.level(name.split()[0], found[1], re.split(r"[,\s]+", names.strip()))


def _settings(builder: CibBuilder, section: _Line, kind: str) -> None:
    for child in section.children:
        found = re.match(r"([\w-]+)(?:=|: )(\S.*)", child.text)
        if found and found[1] not in ("Meta", "Options"):
            builder.properties({found[1]: found[2].removesuffix(" (default)").strip("\"'")}, kind)
        _settings(builder, child, kind)


def _constraint(builder: CibBuilder, kind: str, child: _Line) -> None:
    words = _OPTION.sub(r" \1=\2", child.text).replace("'", "").split()
    words = [word.strip("()") for word in words if word != "resource"]
    if kind == "Ordering" and "then" in words:
        add_order(builder, words)
    elif kind == "Colocation" and "with" in words:
        add_colocation(builder, words)
    elif kind == "Location":
        _location(builder, child)


def _location(builder: CibBuilder, line: _Line) -> None:
    text = re.sub(r"esource pattern(: | ')", r"esource\1regexp%", line.text)
    if found := re.match(r"resource '(\S+)' (prefers|avoids) node '(\S+)' with score (\S+)", text):
        add_location(builder, [found[1], found[2], f"{found[3]}={found[4]}"])
        return
    resource = text.removeprefix("Resource: ")
    for child in line.children:
        entries = child.children or [_Line(child.text.partition(":")[2].strip())]
        for entry in entries:
            node = re.match(r"(?:Node: )?(\S+) \(score:([+-]?\w+)\)", entry.text)
            identity = dict(_OPTION.findall(entry.text)).get("id", "")
            if node:
                builder.constraint("rsc_location", identity, {"rsc": resource, "node": node[1], "score": node[2]})
