"""`python -m duly`: the command line without its script on PATH."""

import sys

from duly.tools.entry import main

if __name__ == "__main__":
    sys.exit(main())
