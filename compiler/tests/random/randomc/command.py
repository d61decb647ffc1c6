"""What the commands have in common: sizes of programs, and lists of numbers as arguments."""

import dataclasses

from .program import Size


def add_size(parser):
    for field in dataclasses.fields(Size):
        parser.add_argument(f"--{field.name}", type=int, default=field.default, metavar="N", help=f"default: {field.default}")


def size_of(arguments):
    return Size(**{field.name: getattr(arguments, field.name) for field in dataclasses.fields(Size)})


def options_of(size):
    """The options that make programs of this size."""
    return [text for field in dataclasses.fields(size) if getattr(size, field.name) != field.default
            for text in (f"--{field.name}", str(getattr(size, field.name)))]


def numbers(text):
    """The set that "1,4-6" stands for."""
    found = set()
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def text_of(found):
    """The text of a set of numbers, as short as it can be."""
    pieces = []
    for one in sorted(found):
        if pieces and one == pieces[-1][1] + 1:
            pieces[-1][1] = one
        else:
            pieces.append([one, one])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pieces)
