"""Finds the template that a finished English text was made of, and fills its values into the translation.

Numbers, units, intervals, paths and names are values: they are copied. A value that is a message itself is translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_PLACE = re.compile(r"\{(\d+)\}")
# In a translation only: a value that is copied even if its words have one, such as the name of a host.
_COPIED = re.compile(r"\{(\d+)!\}")
COMMANDS = (
    *("survey", "study", "run", "reproduce", "accept", "compare", "report", "figure", "runs", "jobs", "history"),
    *("watch", "import", "export", "target", "advise", "guide", "predict", "tune", "knobs", "doctor", "clean"),
    *("failover", "completion", "lab"),
)
_PROGRAMS = "apt-get|aws|ceph|chmod|dmsetup|drbdadm|export|gluster|lctl|lfs|pcs|pip|ssh|srun|sudo|umount|zpool"
# What a person types: a command or an option, with all that follows up to Chinese.
_TYPED = re.compile(rf"(?<![\w./-])((\./)?strakes |({_PROGRAMS}) |--?[a-z][-\w]*[ =])(?=[^ ])")
_COMMAND = re.compile(rf"(\./)?strakes ({'|'.join(COMMANDS)})(?![-\w])|({_PROGRAMS}) \S")
_PATH = re.compile(r"(~|\.\.?)?/\S")
_HEAD = re.compile(r"([^{}:]+):(?: ?\{0\}\.?)?")
_CHINESE_HEAD = re.compile(r"([^{}：]*[\u4e00-\u9fff])：(?:\{0\}。?)?")
_NAMES = re.compile(r"[^\s,]*(,? and [^\s,]+|, ?[^\s,]+)*$|" + _PATH.pattern + "|" + _COMMAND.pattern)
# A number of things, and what is none.
_COUNTED = re.compile(r"\{(\d+)\} ?[个台次项条倍]")
_NUMBER = re.compile(r"(?=.*\d)(?!.*([:;,] | (on|in|of|with|by|at|for) )).*|one|no|all|many|several|few|some")
# A part of a path, of a longer word or of what is quoted.
_GLUED = re.compile(r"(?<=[/='\"_-])\{(\d+)\}|\{(\d+)\}(?=[/=_'\"-])")
_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]+(?![A-Za-z0-9])")
_WHOLE_WORD = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9]+(?![A-Za-z0-9_])")
# An English word, but not a part of a path, an option, a unit or a name.
_ENGLISH = re.compile(r"(?<![\w/.:=%$@-])[A-Za-z][a-z]{2,}(?![\w/=@]|[.:-]\w)", re.ASCII)
_UNITS = frozenset({"KiB", "MiB", "GiB", "TiB", "PiB", "min"})
# From so many letters on a template is known by its words, whatever its values are; or with so many characters at its
# beginning, or at its end after a comma.
_STRONG = 12
_FRAME = 9
# Or with so many characters around more places than that.
_FRAME_OF_SEVERAL = 14
_SEVERAL = 2
_SENTENCE = re.compile(r"(?<=[a-z\d)\]%'\"][.?!])\s+(?=[\w(“])")
_CLAUSE = re.compile(r";\s+")
_AT_MARK = r"(?=[;,:(]| \()"
_AT_WORD = r"(?:(?<![A-Za-z\d])|(?![A-Za-z\d]))"
_COMMA = re.compile(r"[,:]\s")
_COLON = re.compile(r":\s+")
# Where a text may be made of two others, the coarsest first, with what stands there in the translation.
_JOINTS = (
    (_COLON, "："),
    (re.compile(r"\s+=\s+"), " = "),
    (re.compile(r",\s+then\s+|\s+then\s+"), "，然后 "),
    (re.compile(r",\s+and\s+"), "，并且"),
    (re.compile(r",\s+"), "，"),
    (re.compile(r"\s+·\s+"), " · "),
    (re.compile(r"\s+and\s+"), " 和 "),
    (re.compile(r"\s+or\s+"), " 或 "),
    (re.compile(r"\s+to\s+(?=\d)"), " 至 "),
)
_IN_BRACKETS = re.compile(r"(.*\S)\s+\(([^()]*(?:\([^()]*\)[^()]*)*)\)(\.?)", re.DOTALL)
_CHINESE = r"[\u3001-\u9fff\uff01-\uffee]"
_CHINESE_ONE = re.compile(_CHINESE)
# What stands beside Chinese is Chinese, too.
_CHINESE_MARKS = {",": "，", ";": "；", ":": "："}
_MARK = re.compile(r"(?<=[\u4e00-\u9fff）])[,;:] |[,;:] (?=[\u4e00-\u9fff])")
_BLANK_BETWEEN = re.compile(rf"(?<={_CHINESE}) (?={_CHINESE})|(?<=[，。；：、（）！？]) +| +(?=[，。；：、（）！？])")


@dataclass(frozen=True)
class Template:
    """A message with places for values, and its translation."""

    message: str
    translation: str

    @cached_property
    def copied(self) -> frozenset[int]:
        """The places of names, of parts of paths, and of what a person types."""
        plain = _COPIED.sub(r"{\1}", self.translation)
        numbers = [*_COPIED.findall(self.translation), *(one or other for one, other in _GLUED.findall(plain))]
        for part in re.split(f"{_CHINESE}+", plain):
            if typed := _TYPED.search(part):
                numbers += _PLACE.findall(part[typed.start() :])
        return frozenset(map(int, numbers))

    @cached_property
    def counted(self) -> frozenset[int]:
        """The places of numbers of things."""
        return frozenset(map(int, _COUNTED.findall(self.translation)))

    @cached_property
    def letters(self) -> int:
        """How many letters of it are its own."""
        return sum(character.isalpha() for character in _PLACE.sub("", self.message))

    @cached_property
    def is_strong(self) -> bool:
        """Whether it is known by its words, whatever its values are."""
        first, *_, last = _PLACE.split(self.message)
        framed = len(first) >= _FRAME or (len(last) >= _FRAME and last.startswith(", "))
        framed |= len(_PLACE.sub("", self.message)) >= _FRAME_OF_SEVERAL and self.message.count("{") > _SEVERAL
        return self.letters >= _STRONG or framed

    @cached_property
    def ends(self) -> tuple[str, str]:
        """What every text made of it begins and ends with."""
        first, *_, last = _PLACE.split(self.message)
        return first, last

    @cached_property
    def rank(self) -> tuple[int, int, int, str]:
        """Its place among templates that a text may be made of: the most words, then the most places first."""
        return -self.letters, -len(_PLACE.findall(self.message)), -len(self.message), self.message

    @cached_property
    def key(self) -> str:
        """The longest word that stands in every text made of it; empty without one."""
        # What touches a place may be a part of a longer word there.
        return max(_WHOLE_WORD.findall(_PLACE.sub("_", self.message)), key=len, default="")

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """What a text made of it looks like: with short values first, and with long ones first."""
        parts = [re.escape(part) for part in _PLACE.split(self.message)[::2]]
        # Of two values side by side the first is not empty, and the second begins with a mark if it can, else a word.
        texts = (
            value.join(parts).replace(f"{value}(", f"{value.replace('*', '+')}{apart}(")
            for value, apart in (("(.*?)", _AT_MARK), ("(.*?)", _AT_WORD), ("(.*)", _AT_WORD))
        )
        return tuple(re.compile(text, re.DOTALL) for text in dict.fromkeys(texts))

    def may_have(self, values: tuple[str, ...]) -> bool:
        """Say whether the values may be some: none ends before what it lists, and no number of things is a sentence."""
        return not any(value.endswith((",", ";", ":")) for value in values) and not any(
            ": " in values[index] or "; " in values[index] for index in self.counted
        )

    def filled(self, values: list[str]) -> str:
        """Return the translation with these values."""
        return _PLACE.sub(lambda place: values[int(place[1])], _COPIED.sub(r"{\1}", self.translation))


class Translator:
    """Messages and their translations, found by what they look like when filled in.

    >>> chinese = Translator({"{0} of {1} cells were left out": "{1} 个单元中有 {0} 个被略去", "all": "全部"})
    >>> chinese.translate("3 of 12 cells were left out"), chinese.translate("nothing known")
    ('12 个单元中有 3 个被略去', 'nothing known')
    """

    def __init__(self, messages: Mapping[str, str]) -> None:
        self._exact: dict[str, str] = {}
        # What stands before a colon and any text: "For example" and "In bursts".
        self._heads: dict[str, str] = {}
        self._by_word: dict[str, list[Template]] = {}
        self._remembered: dict[str, str | None] = {}
        self._messages: dict[str, str | None] = {}
        chinese = (text for text in messages.values() if re.search(_CHINESE, text))
        self._kept = _UNITS.union(*map(_ENGLISH.findall, chinese))
        for message, text in messages.items():
            self._add(message, text)
            for clause, chinese_clause in _clauses(message, text):
                if len(_PLACE.sub("", clause)) >= _STRONG and clause.count("(") == clause.count(")"):
                    self._add(clause, chinese_clause)
            head, chinese_head = _HEAD.fullmatch(message), _CHINESE_HEAD.fullmatch(text)
            if head and chinese_head:
                self._heads[head[1]] = f"{chinese_head[1]}："
            # A sentence may be a part of another one.
            if message.startswith(("; ", ", ")) and text.startswith(("；", "，")):
                self._add(message[2:], text[1:])
            if message.endswith((".", ":")) and text.endswith(("。", "：")):
                self._add(message[:-1], text[:-1])

    def _add(self, message: str, text: str) -> None:
        if not _PLACE.search(message):
            self._exact.setdefault(message, text)
        elif message != text or not message[0].isalpha() or _COMMAND.match(message):
            # A line of a file, such as "on {0}", is nothing that a text is made of.
            template = Template(message, text)
            self._by_word.setdefault(template.key, []).append(template)

    def translate(self, text: str) -> str:
        """Return the translation; what has none stays as it is."""
        translation = self._known(text.strip())
        if translation is None or translation == text.strip():
            return text
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if not _CHINESE_ONE.search(text):
            translation = _MARK.sub(lambda mark: _CHINESE_MARKS[mark[0][0]], translation)
        return f"{before}{_BLANK_BETWEEN.sub('', translation)}{after}"

    def _known(self, text: str) -> str | None:
        """Return the translation, or None where nothing of it is known."""
        if text not in self._remembered:
            self._remembered[text] = None  # a text is no part of itself
            self._remembered[text] = self._sought(text)
        return self._remembered[text]

    def _sought(self, text: str) -> str | None:
        head, _, rest = text.partition(": ")
        if rest and head in self._heads and self._is_whole(told := self._known(rest)):
            return f"{self._heads[head]}{told}"
        setting, _, value = text.partition(" = ")
        if (name := self._as_message(setting)) and (level := self._as_message(value)):
            return f"{name} = {level}"
        message = self._as_message(text)
        if message is not None or is_neutral(text):
            return message or text
        parts = self._in_parts(text, _SENTENCE, "") or self._in_parts(text, _CLAUSE, "；")
        if parts is None and _COMMAND.match(text):
            loose = (filled for filled, _ in self._matches(text))
            return min([*loose, *self._in_two(text)], key=self._left, default=text)
        ways = [] if parts is None else [parts]
        if parts is None or self._left(parts):
            ways += [filled for filled, _ in self._matches(text)]
        if parts is None:
            ways += [*self._in_two(text), *self._in_brackets(text), *self._from_beginning(text)]
        return min(ways, key=self._left, default=None)

    def _as_message(self, text: str) -> str | None:
        """Translate a text that is one message, with values that are messages or no sentences."""
        if text not in self._messages:
            self._messages[text] = None
            self._messages[text] = self._exact.get(text) or self._from_template(text)
        return self._messages[text]

    def _from_template(self, text: str) -> str | None:
        # First without its full stop, which would be a part of the last value of some short template.
        if text.endswith(".") and (filled := self._as_message(text[:-1])) is not None:
            return filled if filled.endswith("。") else f"{filled}。"
        if text.endswith(":") and (filled := self._as_message(text[:-1])) is not None:
            return f"{filled}："
        if (filled := next((filled for filled, loose in self._matches(text) if not loose), None)) is not None:
            return filled
        if text[:1].isupper() and text[1:2].islower():
            return self._as_message(text[0].lower() + text[1:])
        return None

    def _matches(self, text: str) -> Iterator[tuple[str, bool]]:
        """Return the translations by templates, the one with most words first, and whether it is loose: something in
        it is not known, or a value has sentences.
        """
        words = {"", *_WORD.findall(text)}
        candidates = [
            template
            for word in words
            for template in self._by_word.get(word, ())
            if text.startswith(template.ends[0]) and text.endswith(template.ends[1])
        ]
        # A command or a path is no sentence by chance.
        if _COMMAND.match(text):
            program = text.partition(" ")[0]
            candidates = [template for template in candidates if template.message.startswith(program)]
        elif _PATH.match(text):
            candidates = [template for template in candidates if template.is_strong]
        for template in sorted(candidates, key=lambda template: template.rank):
            for pattern in template.patterns:
                match = pattern.fullmatch(text)
                if match is None or not template.may_have(match.groups()):
                    continue
                filled, loose = self._filled(template, match)
                if not loose or template.is_strong:
                    yield filled, loose

    def _filled(self, template: Template, match: re.Match[str]) -> tuple[str, bool]:
        texts = match.groups()
        copied = template.copied
        values = [text if index in copied else self._value(text) for index, text in enumerate(texts)]
        known = [
            (self._known(text.strip()) or text) if value is None else value
            for text, value in zip(texts, values, strict=True)
        ]
        # A list may follow the last words of a template; what is before them and has several parts is not all of it.
        inner = texts[: -1 if template.message.endswith(("}", "}.")) else None]
        strong = template.is_strong
        # What is copied is no name where sentences follow it; by few words only names are known.
        no_name = any(
            _several(texts[index], _SENTENCE) if strong else not _NAMES.match(texts[index]) for index in copied
        )
        listing = template.letters >= _STRONG
        apart = {text for text in (inner if listing else texts) if _several(text, _SENTENCE, _CLAUSE)}
        joined = apart if strong else apart | {text for text in inner if _several(text, _COMMA)}
        no_number = not strong and not all(_NUMBER.fullmatch(texts[index].strip()) for index in template.counted)
        loose = no_name or no_number or None in values or any(self._as_message(text.strip()) is None for text in joined)
        return template.filled(known), loose

    def _value(self, value: str) -> str | None:
        """Return a value as it stands in the translation; None for words that not everything is known of."""
        core = value.strip()
        translation = self._known(core)
        if not self._is_whole(translation) and self._as_message(core) is None:
            # A name or a command.
            return None if " " in core and not _COMMAND.match(core) else value
        return value if translation == core else translation

    def _is_whole(self, translation: str | None) -> bool:
        """Say whether nothing in a translation was left in English, but words that are in Chinese texts, too."""
        return translation is not None and self._kept.issuperset(_ENGLISH.findall(translation))

    def _in_parts(self, text: str, joint: re.Pattern[str], chinese: str) -> str | None:
        """Sentences or clauses, where several of them may be one message."""
        ends = [match.span() for match in joint.finditer(text)]
        starts, stops = [0, *(end for _, end in ends)], [*(start for start, _ in ends), len(text)]
        pieces: list[str] = []
        index, changed = 0, False
        while index < len(starts) and ends:
            for last in range(len(stops) - 1, index - 1, -1):
                part = text[starts[index] : stops[last]]
                known = self._known(part) if last == index else None if part == text else self._as_message(part)
                if known is not None or last == index:
                    break
            changed |= known is not None and known != part
            pieces.append(part if known is None else known)
            index = last + 1
        if not changed:
            return None
        # English needs the blank after its full stop.
        joints = (chinese or ("" if piece.endswith(("。", "？", "！")) else " ") for piece in pieces[:-1])
        return "".join(f"{piece}{between}" for piece, between in zip(pieces, joints, strict=False)) + pieces[-1]

    def _left(self, translation: str) -> int:
        return sum(word not in self._kept for word in _ENGLISH.findall(translation))

    def _in_brackets(self, text: str) -> Iterator[str]:
        if text.startswith("(") and text.endswith(")") and (inside := self._known(text[1:-1])) is not None:
            yield f"（{inside}）"
        match = _IN_BRACKETS.fullmatch(text)
        if match is not None:
            before, inside = self._known(match[1]), self._known(match[2])
            if before is not None or inside is not None:
                yield f"{before or match[1]}（{inside or match[2]}）{'。' if match[3] else ''}"

    def _in_two(self, text: str) -> Iterator[str]:
        for joint, chinese in _JOINTS:
            for match in joint.finditer(text):
                left, right = text[: match.start()], text[match.end() :]
                if joint is not _COLON and _is_cut(left, right):
                    continue
                first, second = self._known(left) or left, self._known(right) or right
                if (first, second) != (left, right) or (is_neutral(left) and is_neutral(right)):
                    yield f"{first}{chinese}{second}"

    def _from_beginning(self, text: str) -> Iterator[str]:
        """Translate a name with its value, such as "stripe count 4"."""
        words = text.split(" ")
        for count in range(len(words) - 1, 0, -1):
            name, rest = " ".join(words[:count]), " ".join(words[count:])
            # A number of things is no name of what follows it, but a finding with its figure is.
            known = self._exact.get(name) if rest[0].isalpha() else self._as_message(name)
            if known is not None and (" " not in rest or self._known(rest) is not None):
                yield f"{known} {self._known(rest) or rest}"


def _is_cut(left: str, right: str) -> bool:
    """Say whether two parts of a text may be one command, or one path with blanks."""
    if _COMMAND.match(left):
        return not _COMMAND.match(right)
    return bool(_PATH.match(left)) and " " not in left and not _PATH.match(right)


def _clauses(message: str, text: str) -> Iterator[tuple[str, str]]:
    """Return the clauses of a message, which may be told one by one, where its translation has the same ones."""
    clauses, chinese = message.split("; "), text.split("；")
    places = [[_PLACE.findall(_COPIED.sub(r"{\1}", part)) for part in parts] for parts in (clauses, chinese)]
    if len(clauses) < 2 or [*map(sorted, places[0])] != [*map(sorted, places[1])]:
        return
    for clause, chinese_clause, numbers in zip(clauses, chinese, places[0], strict=True):
        order = {number: f"{{{index}" for index, number in enumerate(numbers)}
        yield _renumbered(clause.strip(), order), _renumbered(chinese_clause.strip(), order)


def _renumbered(text: str, order: Mapping[str, str]) -> str:
    return re.sub(r"\{(\d+)", lambda place: order[place[1]], text)


def _several(text: str, *joints: re.Pattern[str]) -> bool:
    return any(joint.search(text.lstrip(";:, ")) for joint in joints)


def is_neutral(text: str) -> bool:
    """Say whether a text has no English words, but numbers, units, paths and names.

    >>> is_neutral("1.31 - 12.0 MiB/s"), is_neutral("/scratch/a"), is_neutral("too few runs")
    (True, True, False)
    """
    return all(word in _UNITS for word in _ENGLISH.findall(text))
