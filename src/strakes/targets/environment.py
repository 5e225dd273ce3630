"""Facts about the machine of a run, which a reader needs to judge its figures years later."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strakes.base.memory import memory_sizes
from strakes.base.version import __version__
from strakes.targets.calls import mount_of

_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CPUS = Path("/proc/cpuinfo")


def capture(target: Path) -> dict[str, Any]:
    """Return facts about this machine and the mount of ``target``, with sizes in bytes; unknown ones are empty or 0.

    >>> captured = capture(Path("/proc"))
    >>> captured["mount"]["file_system"], captured["cpus"] > 0
    ('proc', True)
    """
    memory, distribution = memory_sizes(), ""
    with suppress(OSError):
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    # x86, MIPS, some ARM
    cpu = re.search(r"^(?:model name|cpu model|Model|Processor)\s*:\s*(\S.*)", _text(_CPUS), re.MULTILINE)
    mount = mount_of(target)
    return {
        "captured": datetime.now(UTC).isoformat(),
        "host": platform.node(),
        "kernel": platform.release(),
        "distribution": distribution,
        "architecture": platform.machine(),
        "cpu_model": cpu[1].strip() if cpu else platform.machine(),
        # The processors that this process may use: a container or a batch job often has fewer than the machine.
        "cpus": len(os.sched_getaffinity(0)),
        "cpus_of_machine": os.cpu_count() or 0,
        "memory_bytes": memory.get("MemTotal", 0),
        "memory_available_bytes": memory.get("MemAvailable", 0),
        "mount": {
            "mount_point": mount.mount_point,
            "device": mount.source,
            "file_system": mount.file_system,
            "options": [*mount.options, *(option for option in mount.super_options if option not in mount.options)],
            "root": mount.root,
        },
        "python": platform.python_version(),
        "strakes": __version__,
        "clock_source": _text(_CLOCK),
        "load_average": list(os.getloadavg()),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
