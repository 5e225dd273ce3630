"""Engines that violate the protocol: the front end always ends with a result or an error message."""

from __future__ import annotations

import tracemalloc
from itertools import chain, count
from pathlib import Path
from types import SimpleNamespace

import pytest

from runs.conftest import FakeEngine, Log
from strakes.base.errors import EnvironmentLacksError
from strakes.base.processes import process_start
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.targets.workspace import Workspace

PLAN = Plan(2, (MetadataPhase("create", "file-create", "unique", items=50),))


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {
        "engine._HELLO_S": 4.0,
        "engine._OVERTIME_S": 0.3,
        "engine._CANCEL_S": 0.5,
        "engine._STOP_S": 0.3,
    }.items():
        monkeypatch.setattr(f"strakes.runs.{name}", seconds)


def start_fails(executable: Path) -> EnvironmentLacksError:
    with LocalEngine(executable) as engine, pytest.raises(EnvironmentLacksError) as caught:
        engine.start()
    assert caught.value.where == str(executable) and caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("hello(engine='0.0.0')\nsys.stdin.read()", "version 0.0.0"),
        ("print('no libfmt.so', file=sys.stderr); sys.exit(127)", "exit status 127; no libfmt.so"),
        ("print('no such queue'); sys.exit(1)", "exit status 1; no such queue"),
        ("while not time.sleep(0.1): print('no such queue')", "sent no message for 4 s; no such queue"),
        ("if os.fork() == 0: time.sleep(20)\nsys.exit(7)", "exit status 7"),
        ("say('done', id='x')\ntime.sleep(60)", "not a valid hello"),
        ("hello(nodes=[{'host': 'a b', 'ranks': [0], 'pids': ['x']}])", "not a valid hello"),
        ("hello(absent={'x': 5})", "not a valid hello"),
        ("hello(absent={'x': {}}, engine='0')", "version 0"),
        ("print('{\"type\":' + '[' * 200_000)", "exit status 0"),
        ('print(\'{"type": "hello", "version": {}}\')', "exit status 0"),
    ],
)
def test_an_engine_that_does_not_start_properly_is_not_used(fake_engine: FakeEngine, body: str, why: str) -> None:
    assert why in start_fails(fake_engine(body)).why


def test_a_line_without_end_is_read_in_pieces(fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.runs.process._MOST_MESSAGE_BYTES", 1 << 20)
    code = "for _ in range(300): print('x' * (1 << 20), end=''); print('e' * (1 << 20), end='', file=sys.stderr)"
    tracemalloc.start()
    start_fails(fake_engine(code))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 << 20


@pytest.mark.parametrize("what", ["progress", "error"])
def test_messages_without_end_take_little_memory(
    fake_engine: FakeEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("strakes.runs.process._MOST_PLAN_BYTES", 20 << 20)
    keys = f"id=plan['id'], phase=0, name='', elapsed_s=1, bytes=0, operations=0, ranks_done=0, what='{'x' * 5000}'"
    tracemalloc.start()
    with LocalEngine(fake_engine(f"hello()\nfor plan in plans():\n    while True: say({what!r}, {keys})")) as engine:
        result = engine.run(PLAN, workspace.path, "v1", 3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.ended == {"progress": "limit", "error": "died"}[what] and peak < 50 << 20


def test_a_file_that_is_not_a_program_is_not_started(tmp_path: Path) -> None:
    path = tmp_path / "engine"
    path.write_text("")
    assert "Permission denied" in start_fails(path).why
    path.chmod(0o755)
    assert "Exec format error" in start_fails(path).why


def test_invalid_lines_go_to_the_log(fake_engine: FakeEngine, workspace: Workspace, log: Log) -> None:
    body = """
print("launcher: a word of its own", flush=True)
hello()
for plan in plans():
    print("{not json")
    say("later")
    print('{"type": "sample", "version": 2}')
    say("sample", id="v1")
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\\xff\\xfe\\n")
    print("a warning", file=sys.stderr, flush=True)
    say("done", id="another", status="failed", cleaned=True, left=[])
    say("done", id=plan["id"], status="sometimes", cleaned=True, left=[])
    say("done", id=plan["id"], status="ok", cleaned=True, left=5)
    say("done", id=plan["id"], status="ok", cleaned=True, left=[])
"""
    with LocalEngine(fake_engine(body)) as engine:
        engine._hear = log.append  # type: ignore[assignment]
        result = engine.run(PLAN, workspace.path, "v1", 5)
    assert (result.ended, result.samples, result.errors) == ("ok", (), ())
    text = "\n".join(log)
    invalid = ("{not json", "later", '"version": 2', "another plan", "sometimes", "left: 5")
    for kept in ("launcher: a word", *invalid, "a warning", "\ufffd"):
        assert kept in text


def test_an_engine_that_ignores_everything_is_killed(fake_engine: FakeEngine, workspace: Workspace) -> None:
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    open(sys.argv[0] + ".child", "w").write(str(os.getpid()))
    time.sleep(600)
hello()
for plan in plans():
    say("progress", id=plan["id"], phase=0, name="create", elapsed_s=1, bytes=0, operations=7, ranks_done=1)
    os.mkdir(plan["directory"] + "/" + plan["id"])
    while True: time.sleep(1)
"""
    with LocalEngine(program := fake_engine(body)) as engine:
        result = engine.run(PLAN, workspace.path, "v1", 0.1)
    assert process_start(int(Path(f"{program}.child").read_text())) is None
    assert (result.ended, result.cleaned) == ("limit", True)
    assert result.errors[0].where["ranks_done"] == 1 and "within 400 ms" in result.errors[0].what
    assert not (workspace.path / "v1").exists()


def test_an_engine_that_does_not_cancel_is_stopped_and_read_to_the_end(
    fake_engine: FakeEngine, workspace: Workspace
) -> None:
    body = """
hello()
def last_words(*_):
    say("error", id="v1", what="rank 1 hangs", where={"rank": 1}, why="", remedy="")
    sys.exit(1)
signal.signal(signal.SIGTERM, last_words)
for plan in plans():
    say("progress", id=plan["id"], phase=0, name="create", elapsed_s=1, bytes=0, operations=7, ranks_done=1)
    while True: time.sleep(1)
"""
    with LocalEngine(fake_engine(body)) as engine:
        result = engine.run(PLAN, workspace.path, "v1", 60, lambda _: engine.cancel())
    assert result.ended == "cancelled" and result.errors[0].what == "rank 1 hangs"
    assert len(result.errors) == 2


def test_an_engine_that_does_not_read_its_plan_is_ended(
    fake_engine: FakeEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.runs.process._SEND_S", 0.5)
    with LocalEngine(fake_engine("hello()\ntime.sleep(60)")) as engine:
        result = engine.run(Plan(2, PLAN.phases * 999), workspace.path, "v1", 60)
    assert result.ended == "died" and "it did not read its input" in result.errors[0].why


def test_the_time_for_which_strakes_was_suspended_is_no_silence(
    fake_engine: FakeEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = chain([0.0, 0.0], count(100.0, 0.001))
    monkeypatch.setattr(LocalEngine, "silence_s", 8.0)
    body = (
        "hello()\nfor plan in plans():\n    time.sleep(2)\n    say('done', id='v1', status='ok', cleaned=True, left=[])"
    )
    with LocalEngine(fake_engine(body)) as engine:
        engine.start()
        monkeypatch.setattr("strakes.runs.engine.time", SimpleNamespace(monotonic=lambda: next(clock)))
        assert engine.run(PLAN, workspace.path, "v1", 1000).ended == "ok"


def test_a_second_cancel_does_not_wait(
    fake_engine: FakeEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.runs.engine._CANCEL_S", 3600)
    body = """
hello()
for plan in plans():
    for number in range(1000):
        say("progress", id=plan["id"], phase=0, name="create", elapsed_s=number, bytes=0, operations=7, ranks_done=1)
        time.sleep(0.1)
"""
    with LocalEngine(fake_engine(body)) as engine:
        assert engine.run(PLAN, workspace.path, "v1", 60, lambda _: engine.cancel()).ended == "cancelled"


def test_an_engine_that_dies_with_a_message_is_quoted(fake_engine: FakeEngine, workspace: Workspace) -> None:
    body = """
hello()
for plan in plans():
    os.makedirs(plan["directory"] + "/" + plan["id"] + "/deep/er")
    print("terminate called by --token hidden", file=sys.stderr, flush=True)
    if os.fork() == 0: time.sleep(20)
    os.abort()
"""
    with LocalEngine(fake_engine(body)) as engine:
        result = engine.run(PLAN, workspace.path, "v1", 60)
    assert (result.ended, result.cleaned) == ("died", True)
    assert result.errors[0].why == "killed by SIGABRT; terminate called by --token ..."


def test_an_engine_that_gave_up_is_replaced(fake_engine: FakeEngine, workspace: Workspace) -> None:
    body = """
hello()
for plan in plans():
    say("done", id=plan["id"], status="failed", cleaned=False, left=[plan["id"]])
    os._exit(1)
"""
    with LocalEngine(fake_engine(body)) as engine:
        assert [engine.run(PLAN, workspace.path, f"v{number}", 60).ended for number in range(5)] == ["failed"] * 5
