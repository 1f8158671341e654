"""`python -m autodiff_gen`; the commands are in cli/main.py."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
