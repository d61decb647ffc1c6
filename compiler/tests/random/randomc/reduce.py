"""Takes statements out of a program for as long as it fails in the same way."""

from .runs import Failure, check


def fails(tools, program, failure, kills, without):
    try:
        check(tools, program, [failure.variant] if failure.variant else [], kills, failure.kind == "plain", without)
    except Failure as other:
        return other.kind.split()[0] == failure.kind.split()[0]
    return False


def reduce(tools, program, failure, kills, tell):
    """The numbers of the statements that can be left out, all together."""
    without = frozenset()
    # Pieces of half of what is there, then of a quarter, and so on.
    size = program.count // 2
    while size:
        first = 1
        while first <= program.count:
            piece = frozenset(range(first, first + size)) - without
            if piece and fails(tools, program, failure, kills, without | piece):
                without |= piece
                tell(f"without {len(without)} of {program.count} statements")
            first += size
        size //= 2
    return without
