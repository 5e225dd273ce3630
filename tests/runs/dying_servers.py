"""Program of test_watchdog.py: a study on a simulated Lustre whose servers die at a chosen step.

At that step it creates the file ``cut`` and waits until the file ``dead`` exists.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import strakes.survey.runner as survey_runner
from strakes.cli import apart, main
from strakes.runs import watchdog
from strakes.runs.engine import Engine
from strakes.targets import registry as targets_registry
from strakes.targets import workspace as targets_workspace
from strakes.targets.mountinfo import Mount

runner: Any = survey_runner
registry: Any = targets_registry
workspace: Any = targets_workspace
# Times that replace those of strakes.runs.watchdog and strakes.cli.apart, to keep the test short.
LOST_FOR_S, GRACE_S, ENDING_S, PATIENCE_S = 1.5, 2.1, 3.0, 0.5
STEPS = ("before the first call", "before the pilot", "in the pilot", "between phases", "in cleaning")
FAKES = Path(os.environ.get("FAKES", "/nowhere"))

LCTL = r"""#!/bin/sh
cd $FAKES || exit 1
[ -e dead ] && [ -e lctl-hangs ] && exec sleep 600
now() { stat -c %Y dead 2>/dev/null || date +%s; }
state=FULL; [ -e dead ] && state=DISCONN
mine() { mine=$state; [ $3 = 10.77.0.1 ] && mine=FULL; [ $1 = OST0001 ] && mine=IDLE; }
one() { # TARGET KIND HOST
    case "$words" in
    *_conn_uuid*) name=ost_conn_uuid; [ $2 = mdc ] && name=mds_conn_uuid
        # The client of a dead server tries the other one.
        host=$3; [ -e dead ] && host=10.77.0.1; echo "$2.lus-$1-$2-ffff01.$name=$host@tcp" ;;
    *.state*) mine $1 $2 $3
        printf '%s\ncurrent_state: %s\nstate_history:\n - [ 1000, FULL ]\n' "$2.lus-$1-$2-ffff01.state=" $mine
        [ $mine = DISCONN ] && printf ' - [ %s, DISCONN ]\n' $(now) ;;
    *.import*) mine $1 $2 $3; host=$3; [ $mine = DISCONN ] && host=10.77.0.1
        nids=$3@tcp; [ $1 = MDT0001 ] && nids="$3@tcp, 10.77.0.1@tcp"
        printf '%s\n    state: %s\n    failover_nids: [ %s ]\n    current_connection: %s@tcp\n' \
            "$2.lus-$1-$2-ffff01.import=" $mine "$nids" $host ;;
    esac
}
words="$*"
case "$words" in list_nids) echo 10.77.0.9@tcp ;; esac
case "$words" in *md_stats*) printf 'mdt.lus-MDT0001.md_stats=\nsnapshot_time 1.0 secs.nsecs\n' ;; esac
one MDT0000 mdc 10.77.0.1; one MDT0001 mdc 10.77.0.2; one OST0001 osc 10.77.0.2; one OST0002 osc 10.77.0.2
exit 0
"""
LFS = """#!/bin/sh
[ "$1" = getname ] && echo "lus-ffff01 $2" && exit 0
exit 1
"""
SSH = """#!/bin/sh
[ -e $FAKES/dead ] && [ -e $FAKES/ssh-is-slow ] && sleep 20
[ -e $FAKES/dead ] && [ "$1" = 10.77.0.2 ] && { echo "ssh: connect to host $1: No route to host" >&2; exit 255; }
shift; exec "$@"
"""


def cut() -> None:
    """Report that the step is reached, and wait until the servers are dead. Later calls do nothing.

    The short times apply only from then on, because a busy machine may need longer to get here.
    """
    if not (FAKES / "cut").exists():
        (FAKES / "cut").touch()
        while not (FAKES / "dead").exists():
            time.sleep(0.01)
        watchdog.LOST_FOR_S, watchdog.GRACE_S, watchdog.ENDING_S = LOST_FOR_S, GRACE_S, ENDING_S


def first(function: Callable[..., Any]) -> Callable[..., Any]:

    def after_cut(*words: Any, **named: Any) -> Any:
        cut()
        return function(*words, **named)

    return after_cut


def while_running(purpose: str) -> None:
    run = Engine.run

    def run_and_cut(engine: Engine, plan: Any, directory: Path, name: str, *words: Any, **named: Any) -> Any:
        if (name == "v0") == (purpose == "pilot"):
            threading.Timer(0.05, cut).start()
        return run(engine, plan, directory, name, *words, **named)

    Engine.run = run_and_cut  # type: ignore[method-assign, assignment]


def main_program(step: str, directory: Path, options: list[str]) -> int:
    mount = Mount(1, 0, 1, "/", str(directory), ("rw",), "lustre", "10.77.0.1@tcp:/lus", ())
    registry.mount_of = lambda _: mount
    found = registry.find_directory
    registry.find_directory = workspace.find_directory = lambda path: (found(path)[0], mount)
    if step == "before the first call":
        runner.detect = first(registry.detect)
    elif step == "before the pilot":
        runner.gather_facts = first(runner.gather_facts)
    elif step == "in cleaning":
        runner.note_ends = first(runner.note_ends)
    else:
        while_running("pilot" if step == "in the pilot" else "measure")
    words = ["study", "open-close", str(directory), "--budget", "4s", "--ranks", "2", "-q", *options]
    return apart.run_apart(lambda: main.run(words), PATIENCE_S)


if __name__ == "__main__":
    sys.exit(main_program(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
