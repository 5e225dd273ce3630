"""Engine whose ranks are started by another launcher. The user gives the launcher's command as a template."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from strakes.base.errors import BadInputError
from strakes.runs.launch import Launch
from strakes.runs.mpi import MpiEngine
from strakes.runs.mpi_family import IN_ROOT, find_mpi_engine, pmi_of

_ENGINE = "{engine}"


class TemplateEngine(MpiEngine):
    """An engine started by ``launch.command``, a command with fields such as ``{engine}`` and ``{ranks}``."""

    def command(self) -> Sequence[str]:
        self._named = []
        engine = [*IN_ROOT, str(self._executable or find_mpi_engine()), "--expect-ranks", str(self._ranks)]
        return filled(self._launch, engine)

    @property
    def remedy(self) -> str:
        spoken = pmi_of(self._executable or find_mpi_engine())
        speak = f" The engine's MPI uses {spoken}; with srun, that is --mpi={spoken}." if spoken else ""
        return f"Try the launcher's command without strakes.{speak}"


def filled(launch: Launch, engine: Sequence[str]) -> list[str]:
    """Return the words of the command with its fields filled in. Raises BadInputError if a field or value is missing.

    >>> jsrun = Launch("command", 8, ranks_per_node=4, command="jsrun -n {ranks} -r{ranks_per_node} {engine}")
    >>> filled(jsrun, ["/e", "--expect-ranks", "8"])
    ['jsrun', '-n', '8', '-r4', '/e', '--expect-ranks', '8']
    """
    template, ranks, hosts, ranks_per_node = launch.command, launch.ranks or 1, launch.hosts, launch.ranks_per_node
    nodes = len(hosts) or (-(-ranks // ranks_per_node) if ranks_per_node else None)
    values = {"ranks": ranks, "ranks_per_node": ranks_per_node, "nodes": nodes, "hosts": ",".join(hosts)}
    lacking = [name for name, value in values.items() if value is None and f"{{{name}}}" in template]
    try:
        words = shlex.split(template)
        if lacking:
            raise ValueError(f"{{{lacking[0]}}} needs --ranks-per-node N")
        if _ENGINE not in words or (hosts and "{hosts}" not in template):
            raise ValueError("it lacks {hosts}" if _ENGINE in words else "it lacks {engine}")
        given = [word for word in words if word != _ENGINE]
        if unknown := set(re.findall(r"\{([^{}]*)\}", " ".join(given))) - values.keys():
            wrong = (
                "{engine} is not a word by itself" if "engine" in unknown else f"unknown placeholder {{{min(unknown)}}}"
            )
            raise ValueError(wrong)
        own = [re.sub(r"\{(\w+)\}", lambda field: str(values[field[1]]), word) for word in given]
        place = words.index(_ENGINE)
        return [*own[:place], *engine, *own[place:]]
    except ValueError as error:
        known = ", ".join(f"{{{name}}}" for name in ("engine", *values))
        remedy = f"Write it like --launcher-command 'jsrun -n {{ranks}} {{engine}}'. It may contain {known}."
        what = "the launcher's command cannot be used"
        raise BadInputError(what, where=template, why=str(error), remedy=remedy) from error
