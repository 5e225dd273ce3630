"""Read public result files and compare each figure with the summary that the file itself contains.

python -m bench.corpora DIR, where DIR has bare clones called OWNER+NAME of the repositories in corpora.toml. The
comparison does not use the readers: it looks for the tool's own summary lines with patterns of its own. Not a test of
CI: the repositories are fetched by hand.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError
from strakes.interop.foreign import Foreign
from strakes.interop.formats import read_file
from strakes.units import GIB, KIB, MIB

# The tools round their summaries to three or more digits; fio's KiB/s and elbencho's MiB/s are whole numbers.
_TOLERANCE = 0.01
_MDTEST_ROW = re.compile(
    r"^\s*(?:File|Directory|Tree) (?:creation|stat|read|removal|rename)\s*:?\s+\S+\s+\S+\s+(\S+)\s+\S+\s*$", re.M
)


def main() -> int:
    """Print a table of verdicts; 1 if a figure is wrong or a reader crashed."""
    clones = Path(sys.argv[1])
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    total: Counter[str] = Counter()
    print("| repository | files | right | refused as expected | refused | wrong | crashed |")
    print("|---|---|---|---|---|---|---|")
    for repository, entry in listed.items():
        verdicts: Counter[str] = Counter()
        for path, content in _contents(clones, repository, entry):
            verdict, why = _verdict(content, entry.get("refused", ""))
            verdicts[verdict] += 1
            if verdict not in ("right", "expected"):
                print(f"{repository} {path}: {verdict}: {why}", file=sys.stderr)
        total += verdicts
        _print_row(repository, verdicts)
    _print_row("all", total)
    return 1 if total["wrong"] or total["crashed"] else 0


def _print_row(name: str, verdicts: Counter[str]) -> None:
    cells = (verdicts[key] for key in ("right", "expected", "refused", "wrong", "crashed"))
    print(f"| {name} | {verdicts.total()} | {' | '.join(map(str, cells))} |")


def _contents(clones: Path, repository: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    place = clones / repository.replace("/", "+")
    git = next(
        (path for path in (place, place / "repo", place / ".git", place / "repo" / ".git") if _is_git(path)), place
    )
    for path in entry["paths"]:
        command = ["git", "--git-dir", str(git), "show", f"{entry['commit']}:{path}"]
        yield path, subprocess.run(command, check=True, capture_output=True).stdout


def _is_git(path: Path) -> bool:
    return (path / "HEAD").is_file()


def _verdict(content: bytes, refused: str) -> tuple[str, str]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            tests = read_file(Path(file.name)).tests
        except BadInputError as error:
            return ("expected" if refused and refused in str(error) else "refused"), str(error)
        except Exception as error:  # noqa: BLE001 (any other exception is the finding)
            return "crashed", f"{type(error).__name__}: {error}"
    differences = list(_differences(content.decode(errors="replace"), tests))
    return ("wrong", "; ".join(differences[:3])) if differences else ("right", "")


def _differences(text: str, tests: tuple[Foreign, ...]) -> Iterator[str]:
    """Yield what differs between the figures of the tests and the summaries in the text, tool by tool."""
    for tool, summaries in (
        ("ior", _ior),
        ("mdtest", _mdtest),
        ("elbencho", _elbencho),
        ("fio", _fio),
        ("io500", _io500),
    ):
        stated, read = summaries(text, [test for test in tests if test.tool == tool])
        if len(stated) != len(read):
            yield f"{tool}: {len(stated)} figures in the summaries, {len(read)} read"
        for expected, value in zip(sorted(stated), sorted(read), strict=False):
            if not math.isclose(expected, value, rel_tol=_TOLERANCE, abs_tol=1.0):
                yield f"{tool}: {expected:g} in the summary, {value:g} read"


_Figures = tuple[list[float], list[float]]


def _ior(text: str, tests: list[Foreign]) -> _Figures:
    """Compare the fastest repetition of each test (Max Write, Max Read)."""
    if stated := re.findall(r"^.*Max (?:Write|Read):\s+([\d.]+) MiB/sec", text, re.MULTILINE):
        read = [max(figure.values) / MIB for test in tests for figure in test.figures]
        return [float(rate) for rate in stated if float(rate) > 0], read
    rows = re.findall(
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
    """Compare the bandwidth score, the geometric mean of the four bandwidths of IOR."""
    stated = re.findall(r"^\s*\[SCORE[^\]]*\]\s+Bandwidth ([\d.]+)", text, re.MULTILINE)
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
