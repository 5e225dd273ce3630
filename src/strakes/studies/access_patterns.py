"""access-patterns: one or many files, with whole, segmented or strided access. Source: Zanon Boito et al. (2009)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from strakes.base.language import gettext, ngettext
from strakes.base.units import KIB, MIB, format_bytes
from strakes.model.answers import Claim, Part, Question
from strakes.model.cell import Cell
from strakes.model.phases import TransferPhase
from strakes.model.portrait import Figure, Headline, Setting
from strakes.model.results import Measured, Results
from strakes.report.words import PATTERNS
from strakes.studies.compose import WRITE_AND_READ, ask, lines, operation_of
from strakes.studies.study import BANDWIDTH, Cells, Context, Study

_SIZES = (KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB)
_CLIENTS = (1, 2, 4, 8, 16, 40)
_PATTERNS = ("SFWA", "MFWA", "SFSA", "SFSA strided")
# Relative errors of the published rates: 10 %, and 5 % for reads of a whole file.
_SAME, _SAME_WHOLE = (1 / 1.1, 1.1), (1 / 1.05, 1.05)
_SLOWER, _FASTER, _NOT_SLOWER = (0.0, 1 / 1.1), (1.1, math.inf), (1 / 1.1, math.inf)
_BOTH = ("write", "read")
_THEIRS = {
    "read": "Zanon Boito et al. (Lustre, 40 clients): reads about 20 % faster than writes; contiguous segments of one "
    "file about 20 % faster than a file per client; strided access slower with smaller requests",
    "write": "Zanon Boito et al. (Lustre, 40 clients): request size matters only for strided access",
}
_TITLES = {
    "requests": {"write": "Access patterns: writes by request size", "read": "Access patterns: reads by request size"},
    "clients": {
        "write": "Access patterns: writes by clients (ranks of this node)",
        "read": "Access patterns: reads by clients (ranks of this node)",
    },
}
_STRIDED = {"write": "shared file, writes of {size}", "read": "shared file, reads of {size}"}
_FILES = {"write": "files, writes of {size}", "read": "files, reads of {size}"}
_OF_SIZES = {"write": "writes, rate with {first} / {second} calls", "read": "reads, rate with {first} / {second} calls"}
_OF_CLIENTS = {
    "write": "writes, rate of {first} / {second} clients",
    "read": "reads, rate of {first} / {second} clients",
}
_WITH_CLIENTS = "Zanon Boito et al.: as clients are added, a file per client keeps its rate, and segments slow down"


class AccessPatterns(Study):
    """Bandwidth of access patterns by request size and by number of clients.

    Names in the publication: SFWA, every rank accesses a whole shared file. MFWA, every rank has a file. SFSA, every
    rank has a contiguous segment of a shared file. SFSA strided, the segments of all ranks are interleaved.
    """

    name = "access-patterns"
    title = "Access patterns"
    question = "One file or many, contiguous or strided, small or large requests: which is fastest here?"
    source = "S5"

    def cells(self, context: Context) -> Cells:
        amount = context.amount_bytes(context.team)
        amount -= amount % _SIZES[-1] if amount > _SIZES[-1] else 0
        for size in _SIZES:
            for pattern in _PATTERNS:
                if size <= amount:
                    yield self._cell(context, pattern, size, amount, context.team, "requests")
                else:
                    yield self.skipped(context.too_little(size, context.team), pattern=pattern, transfer_bytes=size)
        each = context.amount_bytes(_CLIENTS[-1])
        size = max(4 * KIB, each // 32)  # As published (Zanon Boito et al. 2009), each client makes 32 requests.
        for clients in _CLIENTS:
            for pattern in _PATTERNS[1:]:
                yield self._cell(context, pattern, size, each, clients, "clients")

    def _cell(self, context: Context, pattern: str, size: int, amount: int, ranks: int, axis: str) -> Cell:
        settings: dict[str, Setting] = {
            "pattern": pattern,
            "transfer_bytes": size,
            "requests": amount // size,
            "ranks": ranks,
            "axis": axis,
        }
        by = size if axis == "requests" else f"{ranks}-clients"
        key = f"{pattern.lower().replace(' ', '-')}/{by}"
        if pattern == "SFWA":
            block = max(1, amount // ranks // size) * size
            largest = math.gcd(block, _SIZES[-1])
            direct = context.bypasses_cache
            make = TransferPhase(
                "make", "write", "shared-file", "segmented", largest, block, sync="fsync", direct=direct
            )
            read = TransferPhase(
                "read", "read", "shared-file", "whole", size, block, cache="drop", stop=context.stonewall()
            )
            return self.cell(context, key, settings, (make, read), WRITE_AND_READ[1:])
        if pattern == "SFSA strided":
            phases = context.write_and_read(size, size, "shared-file", "strided", amount // size)
        else:
            phases = context.write_and_read(size, amount, "file-per-process" if pattern == "MFWA" else "shared-file")
        return self.cell(context, key, settings, phases, WRITE_AND_READ)

    def figures(self, results: Results) -> Sequence[Figure]:
        return [
            self.figure(
                lines(
                    factor,
                    (
                        (
                            gettext("{pattern}: {meaning}", pattern=gettext(name), meaning=gettext(PATTERNS[name])),
                            results.where(operation=operation, pattern=name, axis=axis),
                        )
                        for name in _PATTERNS
                    ),
                ),
                (label, unit, "log"),
                BANDWIDTH,
                self.published(gettext(theirs or _THEIRS[operation])),
                title=gettext(_TITLES[axis][operation]),
            )
            for axis, factor, label, unit, theirs in (
                ("requests", "transfer_bytes", gettext("request size"), "B", ""),
                ("clients", "ranks", gettext("clients (ranks of this node)"), "", _WITH_CLIENTS),
            )
            for operation in _BOTH
        ]

    def questions(self, results: Results) -> Sequence[Question]:
        sizes = _levels(results, "requests", "transfer_bytes")
        if not sizes:
            return []
        strided = (("contiguous", "SFSA"), ("strided", "SFSA strided"))
        shared = (("one per process", "MFWA"), ("one shared file", "SFSA"))
        return [
            question
            for operation in _BOTH
            for name, titles, size, compared, alike in (
                ("strided", _STRIDED, sizes[0], strided, "strided is as fast as contiguous"),
                ("files", _FILES, sizes[-1], shared, "one shared file is as fast as one per process"),
            )
            for question in ask(
                self.name,
                f"{name}-{operation}",
                gettext(titles[operation], size=format_bytes(size)),
                [(gettext(label), _pick(results, "requests", one, operation, size)) for label, one in compared],
                alike=gettext(alike),
            )
        ]

    def claims(self, results: Results) -> Sequence[Claim]:
        sizes, clients = _levels(results, "requests", "transfer_bytes"), _levels(results, "clients", "ranks")
        if not sizes:
            return []
        fine, coarse = sizes[0], sizes[-1]
        most = clients[-1] if clients else 0.0
        fewer = clients[-2] if len(clients) > 1 else 0.0
        few = clients[len(clients) // 2] if clients else 0.0
        down = {"first": format_bytes(coarse), "second": format_bytes(fine)}
        up = {"first": format_bytes(fine), "second": format_bytes(coarse)}

        def size(pattern: str, level: float, operation: str = "read", axis: str = "requests") -> Measured | None:
            return next(iter(_pick(results, axis, pattern, operation, level)), None)

        count = partial(size, axis="clients")

        both, whole = (size("MFWA", coarse), size("MFWA", coarse, "write")), (size("SFWA", coarse), size("SFWA", fine))
        stated: Mapping[str, Sequence[tuple[str, Measured | None, Measured | None, tuple[float, float]]]] = {
            "whole reads of one shared file do not depend on the block size": [
                (gettext("rate with {first} / {second} calls", **down), *whole, _SAME_WHOLE)
            ],
            "with a file per client the number of requests does not matter at equal amounts of data": [
                (gettext(_OF_SIZES[each], **down), size("MFWA", coarse, each), size("MFWA", fine, each), _SAME)
                for each in _BOTH
            ],
            "with a file per client the rate settles as clients are added, and does not fall": [
                (
                    gettext(_OF_CLIENTS[each], first=f"{most:.0f}", second=f"{fewer:.0f}"),
                    count("MFWA", most, each),
                    count("MFWA", fewer, each),
                    _NOT_SLOWER,
                )
                for each in _BOTH
            ],
            "strided access to a shared file is slower with smaller requests, contiguous access is not": [
                (gettext(message, **up), size(pattern, fine), size(pattern, coarse), bounds)
                for message, pattern, bounds in (
                    ("strided, rate with {first} / {second} calls", "SFSA strided", _SLOWER),
                    ("contiguous, rate with {first} / {second} calls", "SFSA", _SAME),
                )
            ],
            "contiguous segments of a shared file are read faster than a file per client (published: by 20 %)": [
                (
                    gettext("rate of a shared file, divided by that of separate files"),
                    size("SFSA", coarse),
                    size("MFWA", coarse),
                    _FASTER,
                )
            ],
            "with many clients, contiguous segments are faster than strided ones, but slow down as clients are added": [
                (
                    gettext("rate of contiguous / strided access, {clients} clients", clients=f"{most:.0f}"),
                    count("SFSA", most),
                    count("SFSA strided", most),
                    _FASTER,
                ),
                (
                    gettext("contiguous, rate of {first} / {second} clients", first=f"{most:g}", second=f"{few:g}"),
                    count("SFSA", most),
                    count("SFSA", few),
                    _SLOWER,
                ),
            ],
            "reads are faster than writes (published: by about 20 %)": [
                (gettext("rate of reads / writes, with a file per client"), *both, _FASTER)
            ],
        }
        return [
            Claim(
                f"{self.name}-s5-{number}",
                self.name,
                gettext("Published statement {number}: {statement}", number=number, statement=gettext(text)),
                tuple(Part(what, (a.id,), (b.id,), *bounds) for what, a, b, bounds in parts if a and b),
            )
            for number, (text, parts) in enumerate(stated.items(), 1)
            if all(a and b and a.id != b.id for _, a, b, _ in parts)
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        clients = _levels(results, "clients", "ranks")
        return [
            Headline(
                ngettext(
                    "{pattern}, {operation}, {count} client (rank)",
                    "{pattern}, {operation}, {count} clients (ranks)",
                    int(clients[-1]),
                    pattern=gettext(str(cell.settings["pattern"])),
                    operation=operation_of(cell),
                ),
                cell.id,
            )
            for cell in (results.where(axis="clients", ranks=clients[-1]) if clients else ())
        ]


def _pick(results: Results, axis: str, pattern: str, operation: str, level: float) -> list[Measured]:
    factor = "transfer_bytes" if axis == "requests" else "ranks"
    return results.where(axis=axis, pattern=pattern, operation=operation, **{factor: level})


def _levels(results: Results, axis: str, factor: str) -> list[float]:
    return sorted({float(cell.settings[factor]) for cell in results.where(axis=axis)})
