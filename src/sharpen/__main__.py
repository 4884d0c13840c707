"""`python -m sharpen` is `sharpen`."""

import sys

from sharpen.cli import main

if __name__ == "__main__":
    sys.exit(main())
