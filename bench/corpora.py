"""Read public result files and compare each figure with the file's own summary.

python -m bench.corpora DIR, where DIR contains bare clones, named OWNER+NAME, of the repositories in corpora.toml.
Patterns find the summaries, independently of the readers. Files of IOR and mdtest are also compared with an IO500
summary in the same directory. CI does not run this: the repositories are fetched by hand.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import GIB, KIB, MIB
from strakes.interop.foreign import Foreign
from strakes.interop.formats import read_file

# Allowed relative difference. Tools round summaries to three or more digits, fio to KiB/s and elbencho to MiB/s.
_TOLERANCE = 0.01
_VERDICTS = ("right", "not compared", "expected", "refused", "wrong", "crashed")
_SUMMARIES = ("result_summary.txt", "io500-summary.txt")
_OPERATIONS = {"write": "creation", "delete": "removal"}
_MDTEST_ROW = re.compile(
    r"^\s*(?:File|Directory|Tree) (?:creation|stat|read|removal|rename)\s*:?\s+\S+\s+\S+\s+(\S+)\s+\S+\s*$", re.M
)


def main() -> int:
    """Print a table of verdicts. Return 1 if any figure is wrong or any reader crashed, else 0."""
    clones = Path(sys.argv[1])
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    total: Counter[str] = Counter()
    print("| repository | files | right | not compared | refused as expected | refused | wrong | crashed |")
    print("|---|---|---|---|---|---|---|---|")
    for repository, entry in listed.items():
        verdicts: Counter[str] = Counter()
        for file in _files(clones, repository, entry):
            verdict, why = _verdict(file, entry.get("refused", ""))
            verdicts[verdict] += 1
            if verdict not in ("right", "not compared", "expected"):
                print(f"{repository} {file.path}: {verdict}: {why}", file=sys.stderr)
        total += verdicts
        _print_row(repository, verdicts)
    _print_row("all", total)
    return 1 if total["wrong"] or total["crashed"] else 0


def _print_row(name: str, verdicts: Counter[str]) -> None:
    cells = (verdicts[key] for key in _VERDICTS)
    print(f"| {name} | {verdicts.total()} | {' | '.join(map(str, cells))} |")


@dataclass(frozen=True)
class _File:
    """A file of a repository. ``summary``: text of the IO500 summary in its directory or the parent, or ""."""

    path: str
    content: bytes
    summary: str = ""


def _files(clones: Path, repository: str, entry: Mapping[str, Any]) -> Iterator[_File]:
    place = clones / repository.replace("/", "+")
    git = next(
        (head.parent for head in (place / "HEAD", *place.glob("*/HEAD"), *place.glob("*/.git/HEAD")) if head.is_file()),
        place,
    )
    command = ["git", "--git-dir", str(git)]
    listed = subprocess.run([*command, "ls-tree", "-r", "-z", entry["commit"]], check=True, capture_output=True)
    objects = {
        os.fsdecode(line.partition(b"\t")[2]): line.split()[2] for line in listed.stdout.split(b"\0") if line.strip()
    }
    with subprocess.Popen([*command, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as contents:

        def read(path: str) -> bytes | None:
            assert contents.stdin and contents.stdout
            contents.stdin.write(objects[path] + b"\n")
            contents.stdin.flush()
            answer = contents.stdout.readline().split()
            return contents.stdout.read(int(answer[2]) + 1)[:-1] if answer[1] == b"blob" else None

        for path in filter(re.compile("|".join(entry["files"])).fullmatch, objects):
            content = read(path)
            if content is not None:
                parents = list(PurePosixPath(path).parents)[:2]
                summaries = [str(parent / name) for parent in parents for name in _SUMMARIES]
                summary = next((read(name) for name in summaries if name in objects and name != path), None)
                yield _File(path, content, (summary or b"").decode(errors="replace"))


def _verdict(file: _File, refused: str) -> tuple[str, str]:
    with tempfile.NamedTemporaryFile() as temporary:
        temporary.write(file.content)
        temporary.flush()
        try:
            tests = read_file(Path(temporary.name)).tests
        except BadInputError as error:
            return ("expected" if refused and re.search(refused, str(error)) else "refused"), str(error)
        except Exception as error:  # noqa: BLE001 (any other exception is a bug to report)
            return "crashed", f"{type(error).__name__}: {error}"
    comparisons = [*_comparisons(file.content.decode(errors="replace"), tests), *_comparison_with_io500(file, tests)]
    differences = [difference for comparison in comparisons for difference in comparison.differences()]
    if not comparisons:
        return "not compared", "no summary that the reader does not read"
    return ("wrong", "; ".join(differences[:3])) if differences else ("right", "")


@dataclass(frozen=True)
class _Comparison:
    """Figures in a file's summary (``stated``), and figures that our reader returned (``read``)."""

    tool: str
    stated: list[float]
    read: list[float]

    def differences(self) -> Iterator[str]:
        if len(self.stated) != len(self.read):
            yield f"{self.tool}: {len(self.stated)} figures in the summaries, {len(self.read)} read"
        for expected, value in zip(sorted(self.stated), sorted(self.read), strict=False):
            if not math.isclose(expected, value, rel_tol=_TOLERANCE, abs_tol=1.0):
                yield f"{self.tool}: {expected:g} in the summary, {value:g} read"


def _comparisons(text: str, tests: tuple[Foreign, ...]) -> Iterator[_Comparison]:
    tools = {"ior": _ior, "mdtest": _mdtest, "elbencho": _elbencho, "fio": _fio, "io500": _io500}
    for tool, summaries in tools.items():
        stated, read = summaries(text, [test for test in tests if test.tool == tool])
        if stated:
            yield _Comparison(tool, stated, read)


def _comparison_with_io500(file: _File, tests: tuple[Foreign, ...]) -> Iterator[_Comparison]:
    name = re.fullmatch(r"(ior|mdtest)-(easy|hard)-(write|read|stat|delete)", PurePosixPath(file.path).stem)
    stated = name and re.search(rf"^\[RESULT *\] +{name[0]} +([\d.]+) ", file.summary, re.MULTILINE)
    if name and stated and float(stated[1]) > 0:
        figure = {"ior": name[3], "mdtest": f"file-{_OPERATIONS.get(name[3], name[3])}"}[name[1]]
        scale = MIB if name[1] == "ior" else 1
        read = [one.values[-1] / scale for test in tests for one in test.figures if one.name == figure]
        unit = GIB / MIB if name[1] == "ior" else 1000
        yield _Comparison(name[0], [float(stated[1]) * unit], read)


_Figures = tuple[list[float], list[float]]


def _ior(text: str, tests: list[Foreign]) -> _Figures:
    """Return the bandwidths of the fastest repetitions, from the summary and from our reader."""
    if stated := re.findall(r"^.*Max (?:Write|Read):\s+([\d.]+) MiB/sec", text, re.MULTILINE):
        read = [max(figure.values) / MIB for test in tests for figure in test.figures]
        return [float(rate) for rate in stated if float(rate) > 0], read
    # If the lines "Max Write" and "Max Read" are missing, use the rows of the result table or of the summary table.
    rows = re.findall(r"^(?:write|read)\s+([\d.]+)(?: +\S+){6,8} *$", text, re.M) or re.findall(
        r"^\s*(?:write|read)\s+([\d.]+) +[\d.]+ +[\d.]+ +[\d.]+ +\S+ +[\d.]+ +[\d.]+ .*\b(?:POSIX|MPIIO)", text, re.M
    )
    return [float(rate) for rate in rows], [max(figure.values) / MIB for test in tests for figure in test.figures]


def _mdtest(text: str, tests: list[Foreign]) -> _Figures:
    rates = re.sub(r"(?ms)^\s*SUMMARY time.*?(?=-- finished|\Z)", "", text)
    stated = [float(rate) for rate in _MDTEST_ROW.findall(rates) if float(rate) > 0]
    return stated, [figure.values[0] for test in tests for figure in test.figures]


def _elbencho(text: str, tests: list[Foreign]) -> _Figures:
    stated = re.findall(r"^\s+Throughput MiB/s\s*:\s+\d+\s+(\d+)\s*$", text, re.MULTILINE)
    figures = [figure for test in tests for figure in test.figures if figure.metric == "bytes_per_s"]
    return [float(rate) for rate in stated if float(rate) > 0], [v / MIB for figure in figures for v in figure.values]


def _fio(text: str, tests: list[Foreign]) -> _Figures:
    if '"fio version"' not in text:
        return [], []
    stated, place = [], text.index("{")
    document = json.JSONDecoder().raw_decode(text, place)[0]
    runs = document.get("data", [document])
    for job in (job for run in runs for job in run.get("jobs") or run.get("client_stats", [])):
        if job.get("jobname") != "All clients":
            stated += [job[side]["bw"] * KIB for side in ("read", "write", "trim") if job.get(side, {}).get("bw")]
    read = [figure.values[0] for test in tests for figure in test.figures if figure.metric == "bytes_per_s"]
    return ([sum(stated)], [sum(read)]) if stated else ([], [])


def _io500(text: str, tests: list[Foreign]) -> _Figures:
    """Return the bandwidth score in the summary, and the geometric mean of the four IOR bandwidths from our reader."""
    stated = re.findall(r"^\s*\[SCORE[ -]*(?:invalid)?\](?:\s+Bandwidth |\nMD .*\nBW\s*= )([\d.]+)", text, re.MULTILINE)
    rates = [
        [
            figure.values[0] / GIB
            for figure in test.figures
            if re.fullmatch(r"ior-(easy|hard)-(write|read)", figure.name)
        ]
        for test in tests
    ]
    return [float(score) for score in stated], [statistics.geometric_mean(four) for four in rates if len(four) == 4]


if __name__ == "__main__":
    sys.exit(main())
