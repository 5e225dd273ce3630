"""``python -m bench``."""

import signal
import sys

from bench.command import main

# Exit through SystemExit, so that file systems are unmounted and temporary files removed.
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
sys.exit(main())
