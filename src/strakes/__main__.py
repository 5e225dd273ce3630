"""``python -m strakes`` is the command line."""

import sys

from strakes.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
