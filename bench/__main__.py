"""Entry point of ``python -m bench``."""

import signal
import sys

from bench.command import main

# Turn SIGTERM into SystemExit, so that clean-up unmounts file systems and removes temporary files.
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
sys.exit(main())
