"""`python -m autodiff_gen`; the commands are in cli.py."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
