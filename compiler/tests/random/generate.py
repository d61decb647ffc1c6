#!/usr/bin/env python3
"""Prints the random program of a seed; inputs/bindings.h says how it is compiled. run.py compares what it prints."""

import argparse
import sys

sys.dont_write_bytecode = True

from randomc.command import add_size, numbers, size_of
from randomc.program import Program


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--without", type=numbers, default=frozenset(), metavar="1,4-9", help="leave out these statements")
    add_size(parser)
    arguments = parser.parse_args()
    print(Program(arguments.seed, size_of(arguments)).text(arguments.without), end="")


if __name__ == "__main__":
    main()
