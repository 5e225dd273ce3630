"""``python -m bench.circles [PACKAGE]``: rooms that import each other in a circle, and files that do; imports anywhere
in a file count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Graph = dict[str, set[str]]
_PACKAGE = Path(__file__).parents[1] / "src" / "strakes"


def modules(package: Path) -> dict[str, Path]:
    """Dotted names of the modules below a package, each with its file; a package itself has the name of its folder."""
    names = {
        path: ".".join((package.name, *path.relative_to(package).with_suffix("").parts))
        for path in package.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def imported_names(path: Path) -> Iterator[str]:
    """Every dotted name that a file imports, of which some are no modules but what these define."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(package: Path) -> Graph:
    """Which module imports which; a package counts only as one that imports, since all that is below it imports it
    unasked.
    """
    known = modules(package)
    targets = {name for name, path in known.items() if path.name != "__init__.py"}
    return {name: (set(imported_names(path)) & targets) - {name} for name, path in known.items()}


def rooms(graph: Graph) -> Graph:
    """Return the same between the packages and modules directly below the package."""
    graph_of_rooms: Graph = {}
    for name, others in graph.items():
        here = room_of(name)
        graph_of_rooms.setdefault(here, set()).update(room for room in map(room_of, others) if room != here)
    return graph_of_rooms


def room_of(name: str) -> str:
    """
    >>> room_of("strakes.lab.ha.lab"), room_of("strakes")
    ('lab', 'strakes')
    """
    return name.split(".")[min(1, name.count("."))]


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """One circle for each edge that has to go until there is none.

    >>> circles({"a": {"b"}, "b": {"a"}, "c": {"a"}})
    [['a', 'b', 'a']]
    """
    left = {name: set(others) for name, others in graph.items()}
    circles = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # The circle is told from what is imported to what imports it.
            circle = list(reversed(error.args[1]))
            circles.append(circle)
            left[circle[0]].discard(circle[1])
        else:
            return circles


def main() -> int:
    package = Path(sys.argv[1]) if len(sys.argv) > 1 else _PACKAGE
    graph = files(package)
    of_rooms, of_files = circles(rooms(graph)), circles(graph)
    for circle in (*of_rooms, *of_files):
        print(" -> ".join(circle))
    print(f"{len(of_rooms)} circles of rooms, {len(of_files)} of files")
    return 1 if of_rooms or of_files else 0


if __name__ == "__main__":
    sys.exit(main())
