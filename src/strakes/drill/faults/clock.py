"""A server's clock that is ahead."""

from __future__ import annotations

import shlex

from strakes.drill.faults.command import OneCommand, through
from strakes.drill.faults.fault import Ask
from strakes.drill.undo import RunCommand
from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.targets.command import Runner, run

_AHEAD_S = 300
_BOOT = "/proc/sys/kernel/random/boot_id"
# Time and time since the machine was started, which no step of the clock changes.
_ASK = f"cat {_BOOT}; date +%s.%N; cat /proc/uptime"


class ClockStep(OneCommand):
    """The clock of another machine, five minutes ahead; put back by the time since that machine was started."""

    undo: RunCommand

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Ask for the time. Raises BadInputError without ``--via``: the drill's own clock must stay."""
        self._run = run_one
        if not ask.via:
            raise BadInputError(
                "--via is required",
                why="the clock of this machine measures the drill",
                remedy="Name a server whose clock is set: --via 'ssh root@mds-a'.",
            )
        asked = run_one(through(ask.via, ("sh", "-c", _ASK)))
        words = asked.stdout.split()
        if asked.status != 0 or len(words) < 3:
            raise EnvironmentLacksError(
                "the server does not report its time", where=ask.via, why=asked.stderr.strip() or asked.stdout.strip()
            )
        boot, offset_s = words[0], float(words[1]) - float(words[2])
        self._strike = through(ask.via, ("date", "-s", f"+{_AHEAD_S} seconds"))
        # Also a second time it sets the right time; one that was started anew has asked others for it.
        now = f"awk '{{ printf \"%.2f\", $1 + {offset_s:.2f} }}' /proc/uptime"
        back = f'test "$(cat {_BOOT})" = {boot} || exit 0; date -s "@$({now})"'
        self.undo = RunCommand(through(ask.via, ("sh", "-c", back)))
        self.text = f"set the clock {_AHEAD_S} s ahead: {shlex.join(self._strike)}"
