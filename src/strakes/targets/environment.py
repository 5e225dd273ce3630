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


def capture(target: Path) -> dict[str, Any]:
    """Return facts about this machine and the mount of ``target``, with sizes in bytes; unknown ones are empty or 0.

    >>> captured = capture(Path("/proc"))
    >>> captured["mount"]["file_system"], captured["cpus"] > 0
    ('proc', True)
    """
    memory = memory_sizes()
    mount = mount_of(target)
    return {
        "captured": datetime.now(UTC).isoformat(),
        "host": platform.node(),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "architecture": platform.machine(),
        "cpu_model": _cpu_model(),
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


def _distribution() -> str:
    with suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return ""


def _cpu_model() -> str:
    # x86, MIPS, some ARM
    match = re.search(
        r"^(?:model name|cpu model|Model|Processor)\s*:\s*(\S.*)", _text(Path("/proc/cpuinfo")), re.MULTILINE
    )
    return match[1].strip() if match else platform.machine()


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
