"""Print the size of each part of the source, import cycles, and numeric constants without unit or source."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

# Part of src/strakes -> (patterns of its files, maximum number of lines). The first matching part gets a file.
PARTS = {
    "other": (
        "survey/compar* survey/history_* tuning/a[cd]*_* studies/measure_* studies/neighbour* studies/layout_*",
        5000,
    ),
    "failover": ("failover/*", 9000),
    "stats, survey": ("stats/* survey/*", 5000),
    "targets": ("targets/*", 6500),
    "watch": ("watch/*", 3500),
    "cli": ("cli/*", 4000),
    "studies": ("studies/*", 4500),
    "lab": ("lab/*", 3500),
    "interop": ("interop/*", 3000),
    "drill": ("control/drill_* control/fault* model/recovery_clients.py", 2500),
    "predict": ("predict/*", 1500),
    "report, language": ("report/* tuning/portraits.py tuning/tuned.py base/language.py base/text_width.py", 2600),
    "runs, knobs, tuning": ("runs/* control/* tuning/*", 6200),
}
_WHOLES = {"src": ("src/strakes", 60000), "bench": ("bench", 7000), "tests": ("tests", 40000)}
_ENGINE_CEILING = 20000
# A constant is explained if its name or comment contains a unit, a source or the effect of a change.
_UNIT_IN_NAME = re.compile(
    r"_(s|ms|us|ns|bytes|b|kib|mib|gib|hz|days?|hours?|minutes?|percent|share|lines?|files|items|ranks|runs|port|status"
    r"|columns|digits|version|schema|seed|times|bits?)$|(^|_)(MIB|KIB|GIB|TIB|BYTES_PER|PORT|VERSION|SCHEMA|SEED|STATUS|MODE|FLAGS?)(_|$)",
    re.IGNORECASE,
)
_EXPLAINED = re.compile(
    r"\(\w+.*\d{4}\)|https?://"
    r"|\d ?%|\w\(\d\)|\b(doubl|half|halv|twice|proportion|square|manual|RFC|measured|default of|seconds|bytes)",
    re.IGNORECASE,
)


def python_files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.py")))


def parts(source: Path) -> dict[str, list[Path]]:
    """Return the Python files of each part. Files that match no pattern belong to "other"."""
    found: dict[str, list[Path]] = {name: [] for name in PARTS}
    for path in python_files(source):
        place = str(path.relative_to(source))
        matches = (
            name for name, (patterns, _) in PARTS.items() if any(fnmatch(place, one) for one in patterns.split())
        )
        found[next(matches, "other")].append(path)
    return found


def lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def statements(paths: list[Path]) -> int:
    """Return the number of statements and except clauses, not counting docstrings."""
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return sum(isinstance(node, ast.stmt | ast.ExceptHandler) and not _is_docstring(node) for node in nodes)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def imports(package: str, root: Path) -> dict[str, set[str]]:
    """Return module -> modules of the same package that it imports, even inside functions."""
    modules = {".".join(path.relative_to(root).with_suffix("").parts): path for path in python_files(root / package)}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    arrows: dict[str, set[str]] = {}
    for name, path in modules.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= members & modules.keys() or {node.module}
        arrows[name] = (wanted & modules.keys()) - {name}
    return arrows


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Return the import cycles: groups of modules that import each other directly or indirectly."""
    reach = {name: _reachable(name, arrows) for name in arrows}
    members = [name for name in arrows if name in reach[name]]
    groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in members}
    return sorted(map(list, groups))


def _reachable(start: str, arrows: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += arrows[name]
    return found


def unexplained(path: Path) -> Iterator[str]:
    """Yield the numeric constants of a module without explanation: a unit, a source or the effect of a change."""
    text = path.read_text().splitlines()
    for node in ast.parse("\n".join(text)).body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(target, ast.Name) or not target.id.isupper() or not _is_number(value):
            continue
        comment = " ".join([text[node.lineno - 1].partition("#")[2], *_comment_above(text, node.lineno - 2)])
        if not _UNIT_IN_NAME.search(target.id) and not _EXPLAINED.search(comment):
            yield f"{path}:{node.lineno}: {target.id}"


_ARITHMETIC = (ast.Constant, ast.UnaryOp, ast.BinOp)


def _is_number(value: ast.expr | None) -> bool:
    parts = [one for one in ast.walk(value) if isinstance(one, ast.expr)] if value else []
    numbers = [type(one.value) in (int, float) for one in parts if isinstance(one, ast.Constant)]
    return any(numbers) and all(numbers) and all(isinstance(one, _ARITHMETIC) for one in parts)


def _comment_above(text: list[str], last: int) -> list[str]:
    first = last
    while first >= 0 and text[first].startswith("#"):
        first -= 1
    return text[first + 1 : last + 1]


def main() -> None:
    source = Path("src/strakes")
    print(f"{'part':38}{'lines':>8}{'at most':>9}{'statements':>12}")
    rows = [(name, files, PARTS[name][1]) for name, files in parts(source).items()]
    rows += [(name, python_files(Path(folder)), ceiling) for name, (folder, ceiling) in _WHOLES.items()]
    for name, files, ceiling in rows:
        print(f"{name:38}{lines(files):8}{ceiling:9}{statements(files):12}")
    engine = [path for end in ("cpp", "hpp") for path in Path("engine").rglob(f"*.{end}") if "tests" not in path.parts]
    print(f"{'engine without tests':38}{lines(engine):8}{_ENGINE_CEILING:9}")
    contracts = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    floors = next(len(contract["layers"]) for contract in contracts if contract["type"] == "layers")
    packages = len(list(source.glob("*/**/__init__.py")))
    print(f"\npackages: {packages}; at the top level: {len(list(source.glob('*/__init__.py')))}; layers: {floors}")
    for package, root in (("strakes", Path("src")), ("bench", Path())):
        found = circles(imports(package, root))
        print(f"import cycles in {package}: {len(found)}", *(" ".join(group) for group in found), sep="\n  ")
    constants = [row for path in python_files(source) for row in unexplained(path)]
    print(f"numeric constants without unit or source: {len(constants)}", *constants, sep="\n  ")


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
