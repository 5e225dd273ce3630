"""``python -m bench``."""

import signal
import sys

from bench.command import main

# An end that unmounts and removes what was made.
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
sys.exit(main())
