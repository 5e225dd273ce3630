"""Options shared by several commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from strakes.base.errors import BadInputError
from strakes.cli import measure
from strakes.cli.main import _load, cli, run
from strakes.cli.options import MAX_SEED, OUTPUT, PATH, Directory, Output, Sampling, takes
from strakes.runs.impact import Impact
from strakes.runs.launch import Launch
from strakes.targets.command import Servers
from strakes.targets.target import Target

EXAMPLES = Path(__file__).parents[2] / "examples"


def parse(*arguments: str) -> Sampling:
    given: list[Sampling] = []

    @click.command()
    @takes(budget_s="2m")
    def command(directory: Directory, options: Sampling) -> None:
        assert directory == Path("d")
        given.append(options)

    command.main(["d", *arguments], standalone_mode=False)
    return given[0]


def test_defaults_are_two_minutes_and_ninety_percent() -> None:
    given = parse()
    assert (given.budget_s, given.confidence, given.relative_half_width) == (120.0, 0.9, 0.1)
    assert 0 <= given.seed <= MAX_SEED and given.launch == Launch() and given.impact == Impact()
    assert not any((given.html, given.json, given.resume, given.neighbour_s, given.servers, given.keep, given.quiet))


def test_options_are_converted_to_typed_values(tmp_path: Path) -> None:
    given = parse("--budget", "90s", "--seed", "7", "-q", "--json", "-", "--html", str(tmp_path / "r.html"), "-n", "3")
    assert (given.budget_s, given.seed, given.quiet, given.launch) == (90.0, 7, True, Launch(ranks=3))
    assert (given.json, given.html) == (Output(None), Output(tmp_path / "r.html"))


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("1048577", "1MiB"),
        ("4097", "1MiB"),
        ("1GB", "953MiB"),
        ("1400KiB", "1280KiB"),
        ("10TB", "1TiB"),
        ("1.1TiB", "1TiB"),
    ],
)
def test_data_per_rank_that_no_plan_can_have_is_refused_with_the_nearest_valid_size(word: str, nearest: str) -> None:
    (kind,) = [option.type for option in _load("survey").params if option.name == "data_per_rank"]
    with pytest.raises(click.BadParameter, match=rf"the nearest valid size is {nearest}\.$"):
        kind.convert(word, None, None)
    assert kind.convert(nearest, None, None) > 0


def test_an_output_that_cannot_be_written_is_refused_before_measuring(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="does not exist"):
        OUTPUT.convert(str(tmp_path / "nowhere" / "out.json"), None, None)
    with pytest.raises(click.BadParameter, match="is a directory"):
        OUTPUT.convert(str(tmp_path), None, None)


@pytest.mark.parametrize("name", ["out", "../x/out", "link", "second"])
def test_two_outputs_to_one_file_are_refused_before_measuring(tmp_path: Path, name: str) -> None:
    place = tmp_path / "x"
    place.mkdir()
    (place / "link").symlink_to("out")
    if name == "second":
        (place / "out").touch()
        (place / "second").hardlink_to(place / "out")
    with pytest.raises(BadInputError, match="would overwrite an input file, another output"):
        parse("--json", f"{place}/out", "--html", f"{place}/{name}")
    assert parse("--json", "/dev/null", "--html", "/dev/null").json == Output(Path("/dev/null"))
    if os.geteuid() == 0:
        os.chown(place / "link", 12345, -1, follow_symlinks=False)  # An output replaces links of other users.
        assert parse("--json", f"{place}/out", "--html", f"{place}/link").json == Output(place / "out")


@pytest.mark.parametrize(("made", "said"), [(True, "strakes clean"), (False, "was renamed or replaced")])
def test_kept_files_are_named_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], made: bool, said: str
) -> None:
    run: Any = SimpleNamespace(id="20260101-000000-a-1a2b")
    monkeypatch.setattr(measure, "Store", lambda: SimpleNamespace(open=lambda _: run))
    if made:
        (tmp_path / f"strakes-{run.id}").mkdir()
    request: Any = SimpleNamespace(directory=tmp_path, keep=True, budget_s=1.0)
    options: Any = SimpleNamespace(quiet=True)
    measure.carry_out(lambda *_: run, request, options)
    shown = capsys.readouterr().err
    assert said in shown and f"strakes-{run.id}" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("run", "in.toml", "d", "--json", "in.toml"),
        ("accept", "in.toml", "d", "--html", "link"),
        ("advise", "--app", "in.toml", "--json", "./in.toml"),
        ("tune", "d", "--app", "in.toml", "--json", "in.toml"),
        ("failover", "check", "d", "--json", "d/in.toml"),
        ("failover", "rehearse", "in.toml", "--json", "in.toml"),
        ("export", "latest", "-o", "store/runs/x/visits.jsonl"),
    ],
)
def test_an_output_overwrites_no_input_and_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRAKES_STORE", str(tmp_path / "store"))
    files = [tmp_path / name for name in ("in.toml", "d/in.toml", "store/runs/x/visits.jsonl")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("kept")
    (tmp_path / "link").symlink_to("in.toml")
    assert run(words) == 2 and "would overwrite an input file" in capsys.readouterr().err
    assert {file.read_text() for file in files} == {"kept"}


class AskedFor(Exception):
    """Raised instead of detecting a target; its arguments are those of ``detect``."""


@pytest.mark.parametrize(
    "words",
    [
        ("survey",),
        ("study", "namespace-scaling"),
        ("study", "reproduce", "S4"),
        ("accept", str(EXAMPLES / "needs-s3.toml")),
        ("tune", "--app", str(EXAMPLES / "apps" / "restart-dump.toml")),
        ("target",),
        ("knobs", "list"),
    ],
)
def test_every_measuring_command_passes_the_servers_option_on(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def detect(path: Path, servers: Servers | None = None) -> Target:
        raise AskedFor(path, servers)

    for module in ("survey.runner", "tuning.run", "targets.registry"):
        monkeypatch.setattr(f"strakes.{module}.detect", detect)
    with pytest.raises(AskedFor) as caught:
        cli.main([*words, str(tmp_path), "--servers", "ssh {host} sudo"], standalone_mode=False)
    assert caught.value.args == (tmp_path, Servers("ssh {host} sudo"))


def every_command(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from every_command(below, f"{name} {word}".strip())


PLACES = [
    (f"{name} {parameter.name}", parameter)
    for name, command in every_command(cli)
    for parameter in command.params
    if isinstance(parameter.type, type(PATH))
]


@pytest.mark.parametrize(("name", "parameter"), PLACES, ids=[name for name, _ in PLACES])
def test_an_empty_name_does_not_mean_the_current_directory(name: str, parameter: click.Parameter) -> None:
    with pytest.raises(click.BadParameter, match="The name is empty"):
        parameter.type.convert("", parameter, None)


@pytest.mark.parametrize(
    "words", ["survey {}", "run {} .", "run plan.toml {}", "run ior -o {}", "run mdtest -n 3 -d {}", "run io500 {}"]
)
def test_an_empty_name_on_the_command_line_is_bad_input(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([word.replace("{}", "") for word in words.split()]) == 2 and "next: " in capsys.readouterr().err


def refusals() -> Iterator[tuple[str, click.Option, str]]:
    """Parse five odd values for each option; yield (command line, option, message) of each refusal."""
    for words, command in every_command(cli):
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag or option.count:
                continue
            name = max(option.opts, key=len)
            for value in ("a1", "b c", "/nowhere/x/y", "0", "99999999999999999999999"):
                try:
                    command.make_context(words, [name, value])
                except click.MissingParameter:
                    continue
                except click.UsageError as error:
                    yield f"{words} {name} {value}", option, error.format_message()


# A helpful refusal gives an example, the choices, the bounds, or the fault of a file.
SAYS_WHAT_IS_RIGHT = re.compile(
    r"such as \S|for example, \S|is not one of '|in the range [x\d]|above 0|\d to \d"
    r"|must be (at least|more)|does not exist|is not writable|give a"
)


def test_every_refusal_shows_a_valid_value() -> None:
    seen = list(refusals())
    assert len({id(option) for _, option, _ in seen}) > 60, "the walk reaches the options"
    assert [(words, text) for words, _, text in seen if not SAYS_WHAT_IS_RIGHT.search(text)] == []


@pytest.mark.parametrize(
    ("words", "example"),
    [
        (["run", "PLAN", "DIR", "--launcher", "mpi", "--launcher-options", "a 'b"], "--launcher-options '"),
        (["run", "PLAN", "DIR", "--launcher-command", "a 'b"], "--launcher-command '"),
        (["watch", "run", "DIR", "--command", "a 'b"], "--command '"),
        (["watch", "run", "DIR", "--metrics", "x"], "--metrics 9817"),
        (["watch", "run", "DIR", "--level", "x"], "p99 of create"),
        (["runs", "history", "--fail-on", "x"], "slower:5%"),
        (["compare", "a", "b", "--fail-on", "x"], "slower:5%"),
        (["tune", "DIR", "--app", "APP", "--only", "x"], "--only transfer="),
        (["predict", "latest", "--at", "x"], "--at clients="),
        (["failover", "drill", "DIR", "--fault", "x"], "One of: "),
        (["study", "nosuch", "DIR"], "striping"),
        (["lab", "up", "xfs", "--name", "a b"], "lower-case letters"),
        (["target", "DIR", "--servers", "ssh mds1"], "it has no {host}"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_value_refused_by_a_command_gets_an_example(
    words: list[str], example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {
        "DIR": str(tmp_path),
        "PLAN": str(EXAMPLES / "probe.toml"),
        "APP": str(EXAMPLES / "apps" / "restart-dump.toml"),
    }
    assert run([places.get(word, word) for word in words]) == 2
    assert example in " ".join(capsys.readouterr().err.split())
