"""Entry point of the commands ``strakes`` and ``python -m strakes``."""

import os
import signal
import sys

_INTERRUPTED_STATUS = 130


def main() -> int:
    """Run the command line and return its exit status. While modules are imported, Ctrl-C ends the process silently."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED_STATUS))
    from strakes.cli.main import main as strakes

    return strakes()


if __name__ == "__main__":
    sys.exit(main())
