"""A kill at any step: every value is restored, and values written by somebody else are never overwritten."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from control.world import MOST, REFUSED, World, in_child, knobs
from strakes.control import knob_change as change
from strakes.control.knob_journal import open_journals
from strakes.control.knob_restore import lost, restore, restore_abandoned

# The step at which the process is killed, or None. One set of changes has about 30 such steps.
STEPS = st.one_of(st.none(), st.integers(1, 60))
CHANGES = st.dictionaries(st.sampled_from(["number", "option"]), st.integers(1, MOST + 50), min_size=1)
_MEMORY = Path("/dev/shm")


class Crashes(RuleBasedStateMachine):
    """State machine of processes that change, restore and crash.

    ``base`` has the final value expected of each setting. For a setting in ``doubtful`` 100 is also right: a process
    may have been killed after the system had adjusted its value to 100 and before it could record that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="strakes-knobs-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self.root = self.place / "store"
        self.world = World(self.place)
        self.base = dict(self.world.values)
        self.doubtful: set[str] = set()
        self.foreigners = 1000
        self.live: tuple[int, int] | None = None
        self.live_values: dict[str, int] = {}

    @initialize()
    def catalogue(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(change, "catalogue", knobs)

    @rule(values=CHANGES, step=STEPS)
    def somebody_sets(self, values: dict[str, int], step: int | None) -> None:
        before = self.world.values
        status = in_child(lambda: self._set(values), self.world, step)
        assert status in (0, REFUSED, -signal.SIGKILL)
        if status == REFUSED:
            assert self.live is not None or self._open()
            assert self.world.values == before
        if status == 0:
            assert all(self.world.values[name] == self._made_of(name, value) for name, value in values.items())
        self._doubt(values, status)

    @rule(values=CHANGES, step=STEPS)
    def somebody_changes_for_a_while(self, values: dict[str, int], step: int | None) -> None:
        before = self.world.values
        status = in_child(lambda: self._change(values), self.world, step)
        assert status in (0, REFUSED, -signal.SIGKILL)
        if status != -signal.SIGKILL:
            assert self.world.values == before
        self._doubt(values, status)

    @precondition(lambda self: self.live is None)
    @rule(values=CHANGES)
    def somebody_works_with_changes(self, values: dict[str, int]) -> None:
        ready, said = os.pipe()
        go, end = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(end)
                with change.changed(self.world.target(), values, store=self.root):
                    os.write(said, b"1")
                    os.read(go, 1)
                status = 0
            finally:
                os._exit(status)
        os.close(said)
        os.close(go)
        working = os.read(ready, 1) == b"1"
        os.close(ready)
        if working:
            self.live, self.live_values = (pid, end), values
        else:
            os.close(end)
            os.waitpid(pid, 0)

    @precondition(lambda self: self.live is not None)
    @rule(kill=st.booleans())
    def who_works_ends(self, kill: bool) -> None:
        self._end(kill=kill)

    @rule(name=st.sampled_from(["number", "option"]))
    def somebody_else_changes(self, name: str) -> None:
        self.foreigners += 1
        self.world.write(name, str(self.foreigners))
        self.base[name] = str(self.foreigners)
        self.doubtful.discard(name)

    @rule(step=STEPS)
    def everything_is_put_back(self, step: int | None) -> None:
        in_child(self._restore, self.world, step)

    @rule(step=STEPS)
    def another_command_begins(self, step: int | None) -> None:
        status = in_child(lambda: restore_abandoned(self.root, lambda _text: None, self.world.ask), self.world, step)
        if status == 0:
            states, errors = open_journals(self.root)
            assert not errors
            # A command that was cut off may still act on a server: its change stays until a second attempt.
            assert all(state.held or state.life() == "alive" or state.tried_unix_s for state in states)

    @invariant()
    def what_a_living_process_changed_stays_changed(self) -> None:
        if self.live is None:
            return
        for name, value in self.live_values.items():
            assert self.world.values[name] in (self._made_of(name, value), self.base[name])

    @invariant()
    def with_nothing_open_everything_is_as_it_was(self) -> None:
        if self.live is None and not self._open():
            assert not lost(self.root)
            self._compare()

    def teardown(self) -> None:
        if self.live is not None:
            self._end(kill=True)
        restore(self.root, ask=self.world.ask)
        restore(self.root, ask=self.world.ask)
        assert not self._open()
        self._compare()
        assert restore(self.root, ask=self.world.ask) == ()
        self.patch.undo()
        shutil.rmtree(self.place)

    def _compare(self) -> None:
        for name, value in self.world.values.items():
            doubtful = name in self.doubtful and value == str(MOST)
            assert doubtful or value == self.base[name], (name, value, self.base[name])
            self.base[name] = value
        self.doubtful.clear()

    def _set(self, values: dict[str, int]) -> None:
        change.set_values(self.world.target(), values, store=self.root)

    def _restore(self) -> None:
        restore(self.root, ask=self.world.ask)

    def _change(self, values: dict[str, int]) -> None:
        with change.changed(self.world.target(), values, store=self.root):
            pass

    def _doubt(self, values: dict[str, int], status: int) -> None:
        # The process may have been killed before it could read back the adjusted value.
        if status == -signal.SIGKILL and values.get("number", 0) > MOST:
            self.doubtful.add("number")

    def _end(self, *, kill: bool) -> None:
        assert self.live is not None
        pid, end = self.live
        if kill:
            os.kill(pid, signal.SIGKILL)
        os.close(end)
        os.waitpid(pid, 0)
        self.live = None

    def _open(self) -> bool:
        states, errors = open_journals(self.root)
        assert not errors
        return bool(states)

    @staticmethod
    def _made_of(name: str, value: int) -> str:
        return str(min(value, MOST)) if name == "number" else str(value)


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
