"""A program's text as a tree of statements, from which pieces can be left out.

Each statement is a Node; leaving out any of them leaves a program that is as well defined as before: what a statement declares
is used inside of it only. What has to stay says so (`keep`).
"""


import textwrap


def lines_of(text, **names):
    """The lines of a text in which names in capitals stand for others."""
    for name, other in names.items():
        text = text.replace(name.upper(), str(other))
    return textwrap.dedent(text).strip("\n").split("\n")


class Node:
    """Lines of text, and between them lists of statements."""

    def __init__(self, *parts, calls=(), keep=False):
        self.parts = parts
        self.calls = tuple(calls)
        self.keep = keep
        self.number = None

    def nodes(self):
        """This node and those in it, in the order of the text."""
        yield self
        for part in self.parts:
            if not isinstance(part, str):
                for node in part:
                    yield from node.nodes()


def number(nodes):
    """Gives numbers, from 1, to what can be left out. Returns how many there are."""
    count = 0
    for top in nodes:
        for node in top.nodes():
            if not node.keep:
                count += 1
                node.number = count
    return count


def render(nodes, without=frozenset(), indent=0):
    """The lines of text, and the functions that they call."""
    lines, calls = [], []
    for node in nodes:
        if node.number in without:
            continue
        calls += node.calls
        # What a line begins is indented more than the line.
        deeper = 0
        for part in node.parts:
            if isinstance(part, str):
                lines.append("    " * indent + part if part else "")
                deeper = (len(part) - len(part.lstrip())) // 4 + (not part.endswith(";"))
            else:
                inner, called = render(part, without, indent + deeper)
                lines += inner
                calls += called
    return lines, calls
