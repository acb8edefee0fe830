"""python -m opmeter runs the program."""

import sys

from ._program import execute

if __name__ == "__main__":
    sys.exit(execute(sys.argv[1:]))
