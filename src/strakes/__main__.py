"""Entry point of the commands ``strakes`` and ``python -m strakes``."""

import gc
import os
import signal
import sys
from contextlib import suppress

_INTERRUPTED_STATUS = 130
# Number of new objects between garbage collections. With Python's default of 700, each command starts 20 ms later.
# Twice the number may leave some MB more of garbage in memory.
_COLLECT_AFTER = 50_000


def main() -> int:
    """Run the command line and return its exit status. Ctrl-C during the imports ends the process without a message."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED_STATUS))
    # Ignored and blocked signals are inherited. With SIGCHLD ignored, every command would seem to have succeeded.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(os.umask(0o077) | 0o022)  # Python runs the byte code that it keeps.
    _discard_open_caches()
    gc.set_threshold(_COLLECT_AFTER)
    from strakes.cli.main import main as strakes

    return strakes()


def _discard_open_caches() -> None:
    # Python made these directories before main(), with the umask of the caller.
    ours = (getattr(module, "__cached__", None) for name, module in sys.modules.items() if name.startswith("strakes"))
    for cache in {os.path.dirname(file) for file in ours if file}:
        with suppress(OSError):
            place = os.open(cache, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            status = os.fstat(place)
            if status.st_uid == os.geteuid() and status.st_mode & 0o022:
                os.fchmod(place, status.st_mode & 0o7755)
                for name in (name for name in os.listdir(place) if name.endswith(".pyc")):
                    with suppress(OSError):
                        os.unlink(name, dir_fd=place)
            os.close(place)


if __name__ == "__main__":
    sys.exit(main())
