"""Mutation testing of security-critical modules: which small mistakes does no test detect?

By hand, as root, in ``tests``: ``python -m security.mutants MODULE SHARE TEST...`` tests that share of all mutants (1:
all), or the mutants of some lines (``line:25,111``). The file is not changed: a child process loads the mutated module
and runs the tests until one fails. Programs that a test starts are not mutated. Mutated code that removes files and
kills processes is dangerous, so it runs in namespaces with one writable directory and no other processes.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

_LIMIT_S = 120.0
_MARK = "STRAKES_MUTANTS"
ROOT = Path(__file__).parents[2]
_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


def mistakes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the mutations of a node, each with its kind. Strings are not mutated: they are messages for people."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[at] = _COMPARE[type(operator)]()
            yield "comparison", other
    elif isinstance(node, ast.BoolOp):
        other_bool = copy.deepcopy(node)
        other_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", other_bool
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        other_binary = copy.deepcopy(node)
        other_binary.op = _BINARY[type(node.op)]()
        yield "arithmetic", other_binary
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "flag", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "number", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call left out", ast.Pass()
    elif isinstance(node, ast.Raise):
        yield "raise left out", ast.Pass()
    elif isinstance(node, ast.If | ast.While):
        other_if = copy.deepcopy(node)
        other_if.test = ast.Constant(isinstance(node, ast.If))
        yield "condition", other_if


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name (line number, kind, original line) and the source of each mutant."""
    tree = ast.parse(source)
    lines = source.splitlines()
    for parent in list(ast.walk(tree)):
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for at, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST):
                    continue
                for kind, other in mistakes(node):
                    _put(parent, name, at, ast.copy_location(other, node))
                    text = ast.unparse(ast.fix_missing_locations(tree))
                    _put(parent, name, at, node)
                    line = getattr(node, "lineno", 1)
                    yield f"{line} {kind}: {lines[line - 1].strip()}", text


def _put(parent: ast.AST, name: str, at: int | None, node: ast.AST) -> None:
    if at is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[at] = node


class _Loader(importlib.abc.SourceLoader):
    def __init__(self, path: str, source: str) -> None:
        self._path, self._source = path, source

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str) -> bytes:
        return self._source.encode()

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError("not cached")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, path: str, source: str) -> None:
        self._module, self._path, self._source = module, path, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=_Loader(self._path, self._source), submodule_search_locations=None
        )


def survives(module: str, path: str, source: str, tests: Sequence[str], *, loud: bool = False) -> bool:
    """Return whether all tests pass with the mutated source. Exceeding the time limit counts as a failure."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0,) if loud else (0, 1, 2):
            os.dup2(quiet, descriptor)
        sys.meta_path.insert(0, _Finder(module, path, source))
        import pytest

        status: int = 1
        with contextlib.suppress(BaseException):
            status = int(
                pytest.main(
                    [
                        "-x",
                        "-q",
                        "-p",
                        "no:cacheprovider",
                        f"--rootdir={ROOT}",
                        f"--config-file={ROOT}/pyproject.toml",
                        *tests,
                    ]
                )
            )
        os._exit(status)
    until = time.monotonic() + _LIMIT_S
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


_APART = """
mount --bind "$1" "$1" && mount --make-rprivate "$1" && mount -o remount,bind,ro / && mount -t proc proc /proc && cd "$1" || exit 3
findmnt -rno TARGET -t ext4,xfs,btrfs,overlay,tmpfs | while read -r place; do
    [ "$place" = "$1" ] || mount -o remount,bind,ro "$place" || exit 3
done
mount -t tmpfs own /dev/shm && mount -t tmpfs own /run || exit 3
shift
exec "$@"
"""


def work_apart(arguments: Sequence[str]) -> None:
    """Execute this program again in its own mount and process namespaces. Does not return."""
    own = tempfile.mkdtemp(prefix="strakes-mutants-")
    os.chmod(own, 0o755)  # some tests switch to other users
    module, share, *tests = arguments
    words = [sys.executable, "-m", "security.mutants", module, share, *(os.path.abspath(test) for test in tests)]
    os.environ |= {"TMPDIR": own, "PYTHONPATH": os.getcwd(), _MARK: own, "PYTHONDONTWRITEBYTECODE": "1"}
    unshare = ["unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child=KILL"]
    os.execvp("unshare", [*unshare, "sh", "-c", _APART, "sh", own, *words])


def is_chosen(mutant: str, share: str) -> bool:
    """Return whether a mutant belongs to the share (or lines); the choice is the same every time."""
    if share.startswith("line:"):
        return mutant.split(" ", 1)[0] in share.removeprefix("line:").split(",")
    return random.Random(mutant).random() < float(share)


def main(module: str, share: str, tests: Sequence[str]) -> int:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    for name in [name for name in sys.modules if name.startswith("strakes")]:
        del sys.modules[name]
    import numpy  # noqa: F401 - each child would import it again
    import pytest  # noqa: F401

    if not survives(module, spec.origin, source, tests, loud=True):
        print("the tests fail without a mistake")
        return 2
    chosen = [mutant for mutant in mutants(source) if is_chosen(mutant[0], share)]
    left = []
    for name, text in chosen:
        if survives(module, spec.origin, text, tests):
            left.append(name)
            print("survives:", name, flush=True)
    killed = len(chosen) - len(left)
    print(f"{module}: {len(chosen)} mutants, {killed} killed ({100 * killed / max(len(chosen), 1):.1f} %)")
    return int(killed < 0.95 * len(chosen))


if __name__ == "__main__":
    if _MARK not in os.environ:
        work_apart(sys.argv[1:])
    try:
        (Path(__file__).parent / "written").touch()
    except OSError:
        pass
    else:
        sys.exit("this place can be written to: nothing is tried")
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
