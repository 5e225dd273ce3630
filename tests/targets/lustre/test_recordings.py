"""Every recording is assigned, commands equal the recorded ones, and readers handle their recordings, even damaged."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strakes.base.errors import StrakesError
from strakes.targets.answers import NotUnderstoodError
from strakes.targets.command import Command, Completed
from strakes.targets.lustre_parameters import parse_recovery, parse_stats
from strakes.targets.lustre_tool import Params
from targets.lustre.assigned import COMMANDS, LAST_COMMANDS, OTHERS, READERS
from targets.lustre.recorded import PLACE, names, recording

READ: dict[str, Callable[[Completed], object]] = {
    **{name: command.read for name, command in {**COMMANDS, **LAST_COMMANDS}.items()},
    **READERS,
}
# lctl exits with an error if one parameter is missing or unreadable, but prints the others.
STATUS_IS_NO_ERROR = frozenset(
    name
    for name, command in {**COMMANDS, **LAST_COMMANDS}.items()
    if command.argv[:2] == ("lctl", "get_param") and "-n" not in command.argv
)
# lfs exits with status 0, but its output is not usable.
SUCCESS_IS_AN_ERROR = {
    "client/err_getdirstripe_file.txt": "not a directory",
    "client/lfs_df_h.txt": "not understood",
    "client/getstripe_I1_pfl.txt": "not understood",
}
PARTS: dict[str, Callable[[str], object]] = {
    ".stats": parse_stats,
    ".md_stats": parse_stats,
    ".read_ahead_stats": parse_stats,
    ".recovery_status": parse_recovery,
}


def test_every_recording_is_assigned_exactly_once() -> None:
    assigned = Counter([*COMMANDS, *LAST_COMMANDS, *READERS, *(f"{name}.txt" for name in OTHERS)])
    assert set(names("client")) | set(names("server")) == set(assigned)
    assert [name for name, times in assigned.items() if times > 1] == []


def test_every_recording_reads_as_the_index_says() -> None:
    assert all(recording(name).command for folder in ("client", "server") for name in names(folder))
    assert (PLACE / "INDEX.txt").read_text().startswith("Real outputs, Lustre 2.17.57")
    assert len(names("failover")) == 10


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_typed_as_recorded(name: str) -> None:
    assert typed(COMMANDS[name]) == recording(name).command.replace('"', "")


@pytest.mark.parametrize("name", LAST_COMMANDS)
def test_the_last_of_several_commands_is_typed_as_recorded(name: str) -> None:
    assert typed(LAST_COMMANDS[name]) == recording(name).last_command


def typed(command: Command[object]) -> str:
    return shlex.join(command.argv).replace("'", "")


@pytest.mark.parametrize("name", READ)
def test_a_success_is_read_and_a_failure_is_explained(name: str) -> None:
    done = recording(name).done
    if name in SUCCESS_IS_AN_ERROR:
        with pytest.raises(StrakesError, match=SUCCESS_IS_AN_ERROR[name]):
            READ[name](done)
    elif done.status == 0 or name in STATUS_IS_NO_ERROR:
        read_all(name, done)
    else:
        with pytest.raises(StrakesError) as caught:
            READ[name](done)
        error = caught.value
        assert not isinstance(error, NotUnderstoodError)
        assert error.what and error.where and error.why
        assert "Usage" not in error.why and "\n" not in str(error)


def read_all(name: str, done: Completed) -> None:
    result = READ[name](done)
    if isinstance(result, Params) and not result.cut_off:
        for parameter, text in result.values.items():
            for suffix, read in PARTS.items():
                if parameter.endswith(suffix):
                    read(text)


LINE = st.sampled_from(["", "=", ":", "x", "-1", "lmm_stripe_count:", "\t0\t", "samples [reqs]", "\x00", "é"])


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """Return the text after one to three changes: cut, drop, repeat, swap or insert lines, or replace a word."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(lines) - 1, 0)))
        kind = draw(st.sampled_from(["cut", "drop", "repeat", "swap", "insert", "bend"]))
        if kind == "insert" or not lines:
            lines.insert(place, draw(LINE) + "\n")
        elif kind == "cut":
            lines = [*lines[:place], lines[place][: draw(st.integers(0, len(lines[place])))]]
        elif kind == "drop":
            del lines[place]
        elif kind == "repeat":
            lines.insert(place, lines[place])
        elif kind == "swap":
            lines[place], lines[-1] = lines[-1], lines[place]
        else:
            words = lines[place].split(" ")
            words[draw(st.integers(0, len(words) - 1))] = draw(LINE)
            lines[place] = " ".join(words)
    return "".join(lines)


FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", READ)
def test_a_reader_of_damaged_output_raises_only_errors_of_strakes(name: str) -> None:
    done = recording(name).done

    @FEW
    @given(mutated(done.stdout), mutated(done.stderr), st.sampled_from([done.status, 0, 1, 4, 110, -9]))
    def damaged(stdout: str, stderr: str, status: int) -> None:
        with suppress(StrakesError):
            read_all(name, replace(done, stdout=stdout, stderr=stderr, status=status))

    damaged()
