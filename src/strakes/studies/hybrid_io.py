"""hybrid-io: large buffered calls with and without hybrid I/O, which Lustre 2.17 and newer perform as direct I/O."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import MIB, format_bytes
from strakes.model.answers import Question
from strakes.model.portrait import Figure, Headline
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask, lines, write_and_read
from strakes.studies.study import BANDWIDTH, Cells, Context, Study

KNOB = "llite.hybrid_io"
_STATES = {"on": "1", "off": "0"}
# By operation: title of a question; by operation and state: name of a line and label of a headline.
_TITLES = {"write": "{setting}, buffered writes of {size}", "read": "{setting}, buffered reads of {size}"}
_LINES = {
    ("write", "on"): ("write, hybrid I/O on", "writes of {size}, hybrid on"),
    ("write", "off"): ("write, hybrid I/O off", "writes of {size}, hybrid off"),
    ("read", "on"): ("read, hybrid I/O on", "reads of {size}, hybrid on"),
    ("read", "off"): ("read, hybrid I/O off", "reads of {size}, hybrid off"),
}
# Sizes around Lustre's default thresholds: 2 MiB for writes, 8 MiB for reads.
_TRANSFERS = (MIB, 2 * MIB, 8 * MIB, 16 * MIB)


class HybridIo(Study):
    """Buffered calls of several sizes with hybrid I/O on and off. The setting is restored afterwards."""

    name = "hybrid-io"
    title = "Hybrid I/O"
    question = "Are large buffered calls faster if the file system turns them into direct ones?"
    source = "Lustre"
    needs_description = True

    def cells(self, context: Context) -> Cells:
        """Return two cells for each call size, with hybrid I/O on and off; skip all if the client lacks the setting."""
        if context.description is None or KNOB not in context.description.client:
            return [
                self.skipped(f"hybrid I/O is not available here ({context.file_system}); it needs Lustre 2.17 or newer")
            ]
        amount = context.amount_bytes(context.team)
        return [
            self.cell(
                context,
                f"{state}/{transfer}",
                {"transfer_bytes": transfer, "hybrid_io": state, "ranks": context.team},
                write_and_read(context, transfer, amount),
                WRITE_AND_READ,
                knobs={KNOB: _STATES[state]},
            )
            for transfer in _TRANSFERS
            for state in _STATES
            if transfer <= amount and amount % transfer == 0
        ] or [self.skipped(f"a rank moves only {format_bytes(amount)} here, less than a large call")]

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return one figure: bandwidth by call size."""
        drawn = lines(
            "transfer_bytes", ((gettext(name), _cells(results, *which)) for which, (name, _) in _LINES.items())
        )
        return [self.figure(drawn, (gettext("transfer size"), "B", "log"), BANDWIDTH)] if drawn else []

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask for each call size whether hybrid I/O is faster."""
        questions: list[Question] = []
        for operation, title in _TITLES.items():
            without = {cell.settings["transfer_bytes"]: cell for cell in _cells(results, operation, "off")}
            for cell in _cells(results, operation, "on"):
                size = cell.settings["transfer_bytes"]
                options = [(gettext("off"), [without[size]] if size in without else []), (gettext("on"), [cell])]
                asked = gettext(title, setting=KNOB, size=format_bytes(float(size)))
                questions += ask(self.name, f"{operation}-{size}", asked, options)
        return questions

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rates of the largest calls with hybrid I/O on and off."""
        return [
            Headline(gettext(label, size=format_bytes(float(cells[-1].settings["transfer_bytes"]))), cells[-1].id)
            for (operation, state), (_, label) in _LINES.items()
            if (cells := _cells(results, operation, state))
        ]


def _cells(results: Results, operation: str, state: str) -> list[Measured]:
    cells = results.where(operation=operation, hybrid_io=state)
    return sorted(cells, key=lambda cell: float(cell.settings["transfer_bytes"]))
