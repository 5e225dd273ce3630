"""The engine whose ranks any other launcher starts: its command as a template."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.runs.mpi import MpiEngine
from strakes.runs.mpi_family import find_mpi_engine, pmi_of

_ENGINE = "{engine}"
_EXAMPLE = "--launcher-command 'jsrun -n {ranks} {engine}'"


class TemplateEngine(MpiEngine):
    """A launcher that a command line describes.

    ``template`` has ``{engine}``, and ``{ranks}``, ``{ranks_per_node}``, ``{nodes}``, ``{hosts}`` as far as wanted.
    """

    def __init__(
        self,
        template: str,
        ranks: int,
        hosts: Sequence[str] = (),
        ranks_per_node: int | None = None,
        executable: Path | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(ranks, hosts, ranks_per_node, executable=executable, log=log)
        self._template = template

    def command(self) -> Sequence[str]:
        """Return the user's command with the engine filled in. Raises EnvironmentLacksError without the engine."""
        self._named = []
        engine = [str(self._executable or find_mpi_engine()), "--expect-ranks", str(self._ranks)]
        return filled(self._template, engine, self._ranks, self._hosts, self._ranks_per_node)

    @property
    def remedy(self) -> str:
        """Advice for when the user's command does not start the engine, with the PMI that its MPI needs."""
        spoken = pmi_of(self._executable or find_mpi_engine())
        speak = f" The engine's MPI uses {spoken}; with srun, that is --mpi={spoken}." if spoken else ""
        return f"Try the launcher's command without strakes.{speak}"


def filled(
    template: str, engine: Sequence[str], ranks: int, hosts: Sequence[str], ranks_per_node: int | None
) -> list[str]:
    """Return the command as a list of arguments. Raises BadInputError if it cannot do what the options ask for.

    >>> filled("jsrun -n {ranks} -r{ranks_per_node} {engine}", ["/e", "--expect-ranks", "8"], 8, [], 4)
    ['jsrun', '-n', '8', '-r4', '/e', '--expect-ranks', '8']
    """
    nodes = len(hosts) or (-(-ranks // ranks_per_node) if ranks_per_node else None)
    values = {"ranks": ranks, "ranks_per_node": ranks_per_node, "nodes": nodes, "hosts": ",".join(hosts)}
    lacking = [name for name, value in values.items() if value is None and f"{{{name}}}" in template]
    try:
        words = shlex.split(template)
        if lacking:
            raise ValueError(f"{{{lacking[0]}}} needs --ranks-per-node N")
        if _ENGINE not in words or (hosts and "{hosts}" not in template):
            raise ValueError("it lacks {hosts}" if _ENGINE in words else "it lacks {engine}")
        return [part for word in words for part in (engine if word == _ENGINE else [word.format_map(values)])]
    except (KeyError, ValueError, IndexError) as error:
        known = ", ".join(f"{{{name}}}" for name in ("engine", *values))
        why = f"there is no {{{error.args[0]}}}" if isinstance(error, KeyError) else str(error)
        remedy = f"Write it like {_EXAMPLE}. It may have {known}."
        raise BadInputError("the launcher's command cannot be used", where=template, why=why, remedy=remedy) from error
