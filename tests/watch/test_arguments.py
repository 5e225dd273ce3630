"""``strakes watch`` refuses unusable arguments at once and names the fault."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.cli.main import run
from strakes.cli.watch import command
from strakes.targets.local import LocalTarget
from strakes.watch.ring import Ring, RingRow


@contextmanager
def interrupts_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def refuse(*words: str, statuses: tuple[int, ...] = (2,)) -> str:
        with interrupts_restored():
            assert run(["watch", *words]) in statuses
        return capsys.readouterr().err

    return refuse


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--level", "p99 of nosuch <= 20 ms in 99 % of minutes"), "not perform the operation 'nosuch'"),
        (("--level", "p99 of create <= 20 ms in 99 % of minutes", "--no-probe"), "--level needs the probe"),
        (("--command", ""), "--command is empty"),
        (("--command", "/nonexistent/page"), "the command '/nonexistent/page' cannot be run"),
        (("--command", "/etc/passwd"), "the command '/etc/passwd' cannot be run"),
        (("--metrics", "99999"), "'99999' is no address and port"),
        (("--metrics", "[::1:9977"), "'[::1:9977' is no address and port"),
        (("--store", "/etc/passwd"), "strakes watch cannot write to the store"),
    ],
)
def test_a_watch_that_could_not_work_is_refused(
    tmp_path: Path, refusal: Callable[..., str], words: tuple[str, ...], said: str
) -> None:
    store = () if "--store" in words else ("--store", str(tmp_path / "store"))
    assert said in refusal(str(tmp_path), *store, *words, statuses=(2, 3))


@pytest.mark.parametrize(
    ("metrics", "host"), [("[::1]:0", "[::1]"), ("::1:0", "[::1]"), ("0", "127.0.0.1"), ("127.0.0.1:0", "127.0.0.1")]
)
def test_the_address_of_metrics_is_printed_as_browsers_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], metrics: str, host: str
) -> None:
    monkeypatch.setattr("strakes.watch.live.run_live", lambda *_: None)
    words = ["run", str(tmp_path), "--store", str(tmp_path), "--metrics", metrics, "--no-probe"]
    with interrupts_restored():
        assert command.main(words, standalone_mode=False) == 0
    printed = capsys.readouterr()
    assert re.search(rf"^metrics: http://{re.escape(host)}:\d+/metrics$", printed.out, re.MULTILINE)
    assert f"the store is inside {tmp_path}" in printed.err


@pytest.mark.parametrize("address", ["300.1.1.1:9000", "192.0.2.1:0", "x" * 300 + ":0"])
def test_an_address_of_metrics_that_cannot_be_used_is_refused_before_the_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("strakes.cli.watch._target", lambda *_: pytest.fail("it was read"))
    words = ["run", str(tmp_path), "--store", f"{tmp_path}/store", "--metrics", address]
    with pytest.raises(EnvironmentLacksError, match="metrics cannot be served") as caught:
        command.main(words, standalone_mode=False)
    assert "--metrics 127.0.0.1:9817" in caught.value.remedy and not list(tmp_path.iterdir())


def test_a_directory_that_is_given_twice_is_watched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fs").mkdir()
    (tmp_path / "link").symlink_to("fs")
    watched: list[object] = []
    monkeypatch.setattr("strakes.watch.live.LiveWatch", lambda paths, *_, **_named: watched.extend(paths))
    monkeypatch.setattr("strakes.watch.live.run_live", lambda *_: None)
    words = ["run", *(f"{tmp_path}/{name}" for name in ("fs", "fs/", "link")), "--store", f"{tmp_path}/store"]
    with interrupts_restored():
        assert command.main(words, standalone_mode=False) == 0
    assert watched == [tmp_path / "fs"]


def test_a_watch_without_a_directory_shows_the_help(refusal: Callable[..., str]) -> None:
    shown = refusal()
    assert "Usage: strakes watch" in shown and "\n  report " in shown and "error" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "/x", "--metrics"), "See: strakes watch --help"),
        (("replay", "/nonexistent/x.csv"), "the file does not exist"),
        (("report", "--html", "/proc/x"), "copy it from "),
        (("report", "--since", "soon"), "90s, 2m or 1h"),
    ],
)
def test_advice_fits_the_error(tmp_path: Path, refusal: Callable[..., str], words: tuple[str, ...], said: str) -> None:
    Ring(tmp_path / "store").add(RingRow(1795132800.0, 60.0, {}))
    kept = ("--store", str(tmp_path / "store")) if words[0] == "report" else ()
    assert said in refusal(words[0], *kept, *words[1:], statuses=(1, 2, 3))


def test_input_files_are_not_overwritten(tmp_path: Path, refusal: Callable[..., str]) -> None:
    store, series = tmp_path / "store", tmp_path / "u.csv"
    Ring(store).add(RingRow(1000.0, 60.0, {}))
    (rows,) = store.iterdir()
    series.write_text("time,rate\n1,2\n")
    before = rows.read_bytes()
    report = ("report", "--store", str(store), "--html", str(rows))
    replay = ("replay", str(series), "--time", "time", "--value", "rate", "--json", str(series))
    for words in (report, replay):
        assert "would overwrite an input file" in refusal(*words)
    assert rows.read_bytes() == before and series.read_text() == "time,rate\n1,2\n"


def test_columns_of_a_recording_are_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    (tmp_path / "server.txt").write_text("### 1700000000\n")
    assert "a recording has no columns" in refusal("replay", str(tmp_path / "server.txt"), "--value", "rate")


def test_a_watch_does_not_start_if_a_requested_server_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = EnvironmentLacksError("the counters of a server cannot be read", where="oss1", why="no route to host")

    def refuse(_: LocalTarget) -> None:
        raise error

    monkeypatch.setattr(LocalTarget, "require_answers", refuse)
    with pytest.raises(EnvironmentLacksError, match="oss1; why: no route to host"):
        command.main(["run", str(tmp_path), "--servers", "env {host}"], standalone_mode=False)
