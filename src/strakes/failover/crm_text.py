"""Read statements of ``crm configure``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from itertools import pairwise
from xml.etree import ElementTree as Xml

from strakes.base.foreign_text import shell_words
from strakes.failover.cib_builder import CibBuilder, Term, read_words
from strakes.failover.known_options import options_of

_BLOCKS = ("params", "meta", "op", "operations", "utilization", "attributes", "rule", "op_params", "op_meta")
_PREFIX = re.compile(r"^\s*(?:sudo\s+)?(?:crm(?:\([^)]*\))?\s*(?:-\S+\s+)*(?:configure)?#?\s+)?")
_SHELL = re.compile(r"(?m)^[ \t]*(#!|sudo\s|crm\b|\S*[#$>]\s)")  # A line of a shell script or of a terminal session.
_MOST_OTHERS = 5  # Maximum number of unknown statements to report. A file with twice as many is probably not for crm.
_NODE_COMMANDS = ("online", "standby", "maintenance", "ready", "attribute", "fence", "clearstate", "delete")
_MOST_LINE = 65536  # Maximum length of a statement in characters.
_SCORE = re.compile(r"([+-]?(?:\d+|inf|infinity)|mandatory|optional|serialize|advisory):?", re.IGNORECASE)
STATEMENT = re.compile(
    r"(?m)^[ \t]*(?:sudo\s+)?(?:crm(?:\([^)\n]*\))?\s*configure#?\s+)?"
    r"(?:primitive\s+\S+\s+(?:\S*:|\w+\s+(?:params|meta|op)\s)|group\s+\S+\s+\S|ms\s+\S+\s+\S|property\s+(?:\S+\s+(?:\\\s*)?)?[\w-]+=|rsc_defaults\s)"
)


def read_crm(text: str) -> CibBuilder:
    """Return the CIB that statements of crm describe. Unknown statements are skipped."""
    builder = CibBuilder()
    lines = [*_statements(text)]
    statements = [words for words in lines if words[0] in _READERS and len(words) > 1]
    known = {*_READERS, *options_of("other statements of crm")}
    others = [words[0] for words in lines if words[0] not in known] if not _SHELL.search(text) else []
    builder.undefined += [f"{word} begins no statement" for word in others[:_MOST_OTHERS]]
    for stage in _STAGES:
        for keyword, *rest in statements:
            if keyword in stage:
                with suppress(ValueError, IndexError):
                    _READERS[keyword](builder, rest)
    # crmsh adds operations and time-outs that the statements omit.
    for keyword, identity, *_ in statements if "dc-version=" not in text else ():
        if keyword == "primitive" and (element := builder.find(identity)) is not None:
            builder.advised_operations(element, timeouts=True)
    return builder


# A shell prompt and the command after it, such as ``[root@z1 ~]# pcs status``.
PROMPT = re.compile(r"(?m)^[ \t]*(?:\[[^\]\n]{1,80}\]|[\w.@-]{1,80}:\S{1,80})[ \t]?[#>$][ \t]+(?=(?:pcs|crm)\s)")


def joined_lines(text: str) -> list[str]:
    """Return the lines of a script, with lines that end in a backslash joined to the next line."""
    return re.sub(r"\\[ \t]*\n", " ", text).splitlines()


_MOST_EXPANDED_BYTES = 65536  # Maximum size in bytes of a script whose loops are expanded.
# Maximum number of words in a loop. An expanded script has at most 30 MB; with double the limit, 60 MB.
_MOST_WORDS_OF_LOOP = 16
_ASSIGNMENT = re.compile(r"""(?m)(?:^|;)[ \t]*(\w+)=(?:["'(]([^"'$()\n]{1,64})["')]|([^\s"'$();]{1,64}))(?=[\s;]|$)""")
# An array of unknown length, ${NAME[@]}, counts as two words.
_UNKNOWN_ARRAY = re.compile(r'"?\$\{(\w+)\[[@*]\]\}"?')
# $NAME, ${NAME}, or ${NAME#PATTERN} and ${NAME%PATTERN}, which cut off the beginning or the end of the value.
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?((?:##?|%%?)[^{}]{1,64})?\})")
_COMMAND_END = re.compile(r"""(?m)(^[ \t]*#.*|\s#\s.*|\\.|'[^'\n]*'|"(?:[^"\\\n]|\\.)*")|(?<![ \t])[ \t]*;(?=\s|$)""")


def expanded(script: str) -> str:
    """Return a shell script with its variables replaced by their values, and its ``for`` loops unrolled."""
    if len(script) > _MOST_EXPANDED_BYTES:
        return script
    lines = _COMMAND_END.sub(lambda found: found[1] or "\n", "\n".join(joined_lines(script)))
    own = re.findall(r"\bfor (\w+) in\b", lines)
    several = re.compile(r"""(?m)^[ \t]*(?:export\s.*|\w+=[^"'\n]*)$""")
    apart = several.sub(lambda found: re.sub(r"(?<![ \t])[ \t]++(?=\w++=)", "\n", found[0]), script)
    known = {name: quoted or plain for name, quoted, plain in _ASSIGNMENT.findall(apart) if name not in own}
    loops = [("", [""], list[str]())]  # (variable, words, lines) of each open loop.
    for line in _UNKNOWN_ARRAY.sub(r"$\1[1] $\1[2]", _with_values(lines, known)).splitlines():
        if loop := re.match(r"\s*(?:for (\w+) in (.*)|while\s)", line):
            most = _MOST_WORDS_OF_LOOP // max(1, math.prod(len(words) for _, words, _ in loops))
            words = [one for word in (loop[2] or "").replace('"', "").split() for one in _in_braces(word)]
            loops.append((loop[1] or "", words[: max(1, most)], []))
        elif re.match(r"\s*done\b", line) and len(loops) > 1:
            name, words, body = loops.pop()
            loops[-1][2].extend(_with_values("\n".join(body), {name: word}) for word in words)
        else:
            loops[-1][2].append(re.sub(r"^\s*do\b", "", line))
    return re.sub(r"\$\{(\w+)\}", r"$\1", "\n".join(line for _, _, body in loops for line in body))


def _in_braces(word: str) -> list[str]:
    found = re.fullmatch(r"([^{}$]*)\{([^{}$]*)\}([^{}$]*)", word)
    ends = re.fullmatch(r"(\d{1,4})\.\.(\d{1,4})", found[2]) if found else None
    if not found:
        return [word]
    inner = [str(number) for number in range(int(ends[1]), int(ends[2]) + 1)] if ends else found[2].split(",")
    return [f"{found[1]}{part}{found[3]}" for part in inner]


def _with_values(text: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        given, change = values.get(found[1] or found[2]), found[3] or ""
        if given is None:
            return found[0]
        cuts, pattern = range(len(given) + 1), change.lstrip("#%")
        if change.startswith("#"):
            kept = [given[cut:] for cut in cuts if fnmatchcase(given[:cut], pattern)]
        else:
            kept = [given[:cut] for cut in reversed(cuts) if fnmatchcase(given[cut:], pattern)]
        return kept[-1 if change[:2] in ("##", "%%") else 0] if kept else given

    return _REFERENCE.sub(value, text)


# In a shell, # begins a comment only where a word begins.
_BEFORE_COMMENT = re.compile(r"""(?:\\.|'[^']*'|"(?:[^"\\]|\\.)*"|(?<=\S)#|[^#])*+""")


def split_words(line: str, *, comments: bool = True) -> list[str]:
    """Split a line into words as a shell does. Invalid lines are split at blanks."""
    before = _BEFORE_COMMENT.match(line) if comments else None
    try:
        return shell_words(before[0] if before else line)
    except ValueError:
        return line.split()


def _statements(text: str) -> Iterator[list[str]]:
    for line in joined_lines(text):
        bare = _PREFIX.sub("", line, count=1)  # In crm, # may begin a word (#uname), so it begins no comment.
        if len(bare) <= _MOST_LINE and bare.strip() and not bare.lstrip().startswith("#"):
            yield split_words(bare, comments=False)


def _infinite(score: str) -> str:
    text = score.rstrip(":").lower().replace("mandatory", "inf").replace("advisory", "0")
    return re.sub(r"^([+-]?)inf(inity)?$", r"\1INFINITY", text).lstrip("+")


def _node(builder: CibBuilder, words: list[str]) -> None:
    names = [word for word in words if not word.endswith(":") and "=" not in word and word not in _BLOCKS]
    if names and not (names[0] in _NODE_COMMANDS and len(names) > 1):
        given = re.fullmatch(r"\$?id=(\d+)|(\d+):", words[0])
        identity = (given[1] or given[2]) if given else ""
        builder.node(names[0].partition(":")[0], read_words(words, _BLOCKS).block("attributes"), identity)


def _primitive(builder: CibBuilder, words: list[str], tag: str = "primitive") -> None:
    # A rule may choose between sets of parameters. Keep the last set.
    rest = [word for before, word in pairwise(words[1:]) if (before, word) != ("params", "rule")]
    builder.primitive(words[0], words[1], read_words(rest, _BLOCKS)).tag = tag


def _clone(builder: CibBuilder, words: list[str], *, promotable: bool = False) -> None:
    read = read_words(words, _BLOCKS)
    if len(read.plain) > 1:
        builder.clone(read.plain[0], read.plain[1], read.block("meta"), promotable=promotable)


def _location(builder: CibBuilder, words: list[str]) -> None:
    end = words.index("}") if words[1] == "{" else 1
    head, *rules = (part.split("\0") for part in re.split("(?:^|\0)rule(?:\0|$)", "\0".join(words[end + 1 :])))
    read = read_words(head, ())
    role, scored = read.settings.get("role", ""), [word for word in read.plain if _SCORE.fullmatch(word)]
    others = [word for word in read.plain if word not in scored[:1]]
    placed = {"node": others[0], "score": _infinite(*scored[:1] or ["inf"]), "role": role} if not rules else {}
    given = {"rsc": words[1] if end == 1 else "", "resource-discovery": read.settings.get("resource-discovery", "")}
    constraint = builder.constraint("rsc_location", words[0], given | placed)
    if end > 1:
        builder.resource_set(constraint, words[2:end], {})
    for rule in rules:
        read = read_words(rule, ())
        # The score of a rule may be a node attribute, as in "pingd: defined pingd".
        score = next((word for word in read.plain if _SCORE.fullmatch(word) or word.endswith(":")), "inf")
        terms = terms_of(word for place, word in enumerate(rule) if word != score or score in rule[:place])
        number = _infinite(score) if _SCORE.fullmatch(score) else score
        builder.rule(
            constraint, number.rstrip(":"), terms, "or" if "or" in rule else "and", read.settings.get("role", role)
        )


_RULE_OPTION = re.compile(r"\$?(id|role|score|score-attribute|constraint-id|resource-discovery)=.*")
# Names of date operations in crm and pcs -> names in the CIB.
_DATE_OPERATIONS = {"in": "in_range", "spec": "date_spec", "date-spec": "date_spec"}


def terms_of(words: Iterable[str]) -> Iterator[Term]:
    """Yield the XML attributes of each expression in the text of a rule."""
    text = " ".join(word for word in words if not _RULE_OPTION.fullmatch(word))
    for part in re.split(r"\s(?:and|or)\s", re.sub("[()]", " ", text)):
        parts = part.split()
        if parts[:1] in (["date"], ["date-spec"]):
            pairs = dict(word.split("=", 1) for word in parts if "=" in word)
            plain = [word for word in parts if "=" not in word and word not in ("date", "to", "duration")]
            operation, *dates = plain or ["date_spec"]
            names = {"gt": ("start",), "lt": ("end",)}.get(operation, ("start", "end"))
            given = dict(zip(names, dates, strict=False)) | {key: pairs.pop(key) for key in names if key in pairs}
            yield {"operation": _DATE_OPERATIONS.get(operation, operation)} | given, pairs
        elif len(parts) == 2 and parts[0] in ("defined", "not_defined"):
            yield {"attribute": parts[1], "operation": parts[0]}, {}
        elif len(parts) >= 3:
            operation, value = (word.rpartition(":")[2] for word in (parts[1], parts[-1]))
            yield {"attribute": parts[0], "operation": operation, "value": value}, {}


def _scored(words: list[str], usual: str) -> tuple[str, list[list[tuple[str, str]]], dict[str, str]]:
    read = read_words(words, ())
    scored = bool(read.plain) and _SCORE.fullmatch(read.plain[0]) is not None
    # Resources in parentheses, ( A B ), may start in any order.
    texts = re.findall(r"[(\[]([^()\[\]]*)[)\]]|([^\s()\[\]]+)", " ".join(read.plain[1 if scored else 0 :]))
    sets = [[word.partition(":")[::2] for word in (inner or single).split()] for inner, single in texts]
    return read.plain[0] if scored else usual, list(filter(None, sets)), read.settings


def _add_sets(builder: CibBuilder, constraint: Xml.Element, sets: list[list[tuple[str, str]]], key: str) -> None:
    for members in sets:
        attributes = {key: members[0][1], "sequential": "false" if len(members) > 1 else ""}
        builder.resource_set(constraint, [name for name, _ in members], attributes)


def _colocation(builder: CibBuilder, words: list[str]) -> None:
    given, sets, _ = _scored(words[1:], "")
    if not given and not words[1].endswith(":"):  # A word with a colon may be a node attribute with the score.
        builder.undefined.append(f"{words[0]} has no score")
    score = _infinite(given or "INFINITY")
    if [len(members) for members in sets] == [1, 1]:
        builder.colocation(words[0], sets[0][0], sets[1][0], score)
    elif sets:
        _add_sets(builder, builder.constraint("rsc_colocation", words[0], {"score": score}), sets, "role")


def _order(builder: CibBuilder, words: list[str]) -> None:
    score, sets, settings = _scored(words[1:], "mandatory")
    word = score.rstrip(":").lower()
    kinds = {"optional": "Optional", "serialize": "Serialize", "0": "Optional", "advisory": "Optional"}
    options = {"kind": kinds.get(word, "Mandatory"), "symmetrical": settings.get("symmetrical", "")}
    if [len(members) for members in sets] == [1, 1]:
        builder.order(words[0], sets[0][0], sets[1][0], options)
    elif sets:
        _add_sets(builder, builder.constraint("rsc_order", words[0], options), sets, "action")


def _ticket(builder: CibBuilder, words: list[str]) -> None:
    read = read_words(words[1:], ())
    for number, name in enumerate(read.plain[1:]):
        given = {"ticket": read.plain[0].rstrip(":"), **dict(zip(("rsc", "rsc-role"), name.split(":"), strict=False))}
        builder.constraint("rsc_ticket", f"{words[0]}{number or ''}", given | read.settings)


def _topology(builder: CibBuilder, words: list[str]) -> None:
    target, index = "", 0
    for word in words:
        if word.endswith(":"):
            target, index = word[:-1], 0
            continue
        index += 1
        for name in [target] if target else builder.node_names:
            builder.level(name, str(index), word.split(","))


def settings_reader(section: str) -> Callable[[CibBuilder, list[str]], None]:
    """Return a function that reads settings ``NAME=VALUE`` into a section of the CIB."""

    def read(builder: CibBuilder, words: list[str]) -> None:
        found = read_words((word for word in words if word != "meta"), ()).settings
        builder.properties({key: value for key, value in found.items() if key != "id"}, section)

    return read


def _resource(builder: CibBuilder, words: list[str]) -> None:
    # Statements: maintenance RESOURCE off, meta RESOURCE set NAME VALUE
    given = {"maintenance off": ["maintenance=false"], "meta set": ["=".join(words[3:5])]}
    builder.change(words[1], read_words(["meta", *given.get(" ".join(words[:3:2]), ())], _BLOCKS))


_READERS: dict[str, Callable[[CibBuilder, list[str]], None]] = {
    "node": _node,
    "rsc_template": partial(_primitive, tag="template"),
    "primitive": _primitive,
    "group": lambda to, words: to.group((own := read_words(words, _BLOCKS)).plain[0], own.plain[1:], own.block("meta")),
    # Statement: modgroup GROUP add RESOURCE before MEMBER
    "modgroup": lambda builder, words: builder.group(
        words[0], words[2:3] if words[1] == "add" else (), {}, dict([words[3:5]] if words[4:] else [])
    ),
    "clone": _clone,
    "ms": partial(_clone, promotable=True),
    "master": partial(_clone, promotable=True),
    "location": _location,
    "colocation": _colocation,
    "collocation": _colocation,
    "order": _order,
    "rsc_ticket": _ticket,
    "property": settings_reader("crm_config"),
    "rsc_defaults": settings_reader("rsc_defaults"),
    "op_defaults": settings_reader("op_defaults"),
    "fencing_topology": _topology,
    "resource": _resource,
}
_STAGES = (
    ("node", "rsc_template", "primitive"),
    ("group", "modgroup"),
    tuple(set(_READERS) - {"node", "rsc_template", "primitive", "group", "modgroup"}),
)
