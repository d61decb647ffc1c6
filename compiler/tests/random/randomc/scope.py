"""What a statement can name: objects, arrays, numbers, and how they may be used.

The steps of a program rest on one rule. What is *owned* may be changed, and pointers to it may be stored in what is owned.
Before the transaction of a step only the new data of the step are owned, so that a step that was killed there does the same when
it is run again. So a pointer that was read from what is not owned is not stored, and nothing is changed through it.
"""

import copy
from dataclasses import dataclass

from .data import Field, Link, Part, Parts, Row, Scalar, Struct, Table, View


@dataclass(frozen=True)
class Value:
    """A number in a variable or an object."""

    text: str
    scalar: Scalar
    is_owned: bool = True
    is_bits: bool = False


@dataclass(frozen=True)
class Index:
    """A number from 0 up to `limit`, which is not one: the variable of a loop."""

    text: str
    limit: int


@dataclass(frozen=True)
class Count:
    """A number from 0 to `limit`, in a variable that nobody changes."""

    text: str
    limit: int


@dataclass(frozen=True)
class Array:
    """`length` numbers. An array that overlaps with no other one of the scope has a `name`."""

    text: str
    scalar: Scalar
    length: int
    is_owned: bool = True
    is_nvm: bool = True
    name: str = ""


@dataclass(frozen=True)
class Object:
    """A struct: `access` comes before a member's name. `lasts`: it is never freed."""

    access: str
    lvalue: str
    address: str
    struct: Struct
    is_owned: bool = True
    is_nvm: bool = True
    lasts: bool = False

    def is_like(self, struct, must_own):
        return self.struct is struct and (self.is_owned or not must_own)


def through(pointer, struct, is_owned=True, lasts=False):
    """What a pointer that is not null leads to."""
    return Object(f"{pointer}->", f"*{pointer}", pointer, struct, is_owned, True, lasts)


def named(lvalue, struct, is_owned=True, is_nvm=True, lasts=False):
    return Object(f"{lvalue}.", lvalue, f"&{lvalue}", struct, is_owned, is_nvm, lasts)


@dataclass(frozen=True)
class Objects:
    """An array of structs."""

    text: str
    struct: Struct
    length: int
    is_owned: bool = True
    lasts: bool = False

    def at(self, index):
        return named(f"{self.text}[{index}]", self.struct, self.is_owned, True, self.lasts)


@dataclass(frozen=True)
class Head:
    """A pointer that a list or a tree begins with."""

    lvalue: str
    chain: object
    is_owned: bool = True


class Scope:
    def __init__(self):
        self.values = []
        self.indices = []
        # Variables that are as large as their limit at most.
        self.counts = []
        self.arrays = []
        self.tables = []
        self.objects = []
        self.rows = []
        self.heads = []
        # What was stored last: an optimizer that takes two places for different ones, or for one, shows when that is read.
        self.recent = []

    def inner(self):
        scope = copy.copy(self)
        for name, content in vars(self).items():
            setattr(scope, name, list(content))
        return scope

    def index(self, draw, limit):
        """An expression for a place in an array of so many."""
        known = [index for index in self.indices if index.limit <= limit]
        if known and draw.chance(0.75):
            index = draw.choice(known[-2:])
            return draw.weighted([(6, index.text), (1, f"{index.limit - 1} - {index.text}"),
                                  (1, f"({index.text} + {draw.randrange(limit)}) % {limit}")])
        if self.indices and draw.chance(0.4):
            return f"({draw.choice(self.indices).text} * {draw.choice([1, 2, 3, 7])} + {draw.randrange(limit)}) % {limit}"
        numbers = [value for value in self.values if not value.scalar.is_real]
        if numbers and draw.chance(0.25):
            return f"(uint32_t){draw.choice(numbers).text} % {limit}"
        return str(draw.randrange(limit))

    def all_objects(self, draw, must_own=False):
        """The objects, those in arrays at some place, and those in objects."""
        found = [one for one in self.objects if one.is_owned or not must_own]
        found += [row.at(self.index(draw, row.length)) for row in self.rows if row.is_owned or not must_own]
        for one in list(found):
            found += parts_of(draw, self, one)
        return found

    def all_arrays(self, draw, must_own=False):
        found = list(self.arrays)
        found += [Array(f"{table.text}[{self.index(draw, table.rows)}]", table.scalar, table.length, table.is_owned)
                  for table in self.tables]
        for one in self.all_objects(draw):
            for member in one.struct.members:
                text = one.access + member.name
                if isinstance(member, Row):
                    found.append(Array(text, member.scalar, member.length, one.is_owned, one.is_nvm))
                elif isinstance(member, Table):
                    row = f"{text}[{self.index(draw, member.rows)}]"
                    found.append(Array(row, member.scalar, member.length, one.is_owned, one.is_nvm))
        return [array for array in found if array.is_owned or not must_own]

    def numbers(self, draw, must_own=False):
        """Some of the numbers that there are: in variables, in objects, in arrays."""
        found = [value for value in self.values if value.is_owned or not must_own]
        found = draw.sample(found, min(4, len(found)))
        objects = self.all_objects(draw, must_own)
        for one in draw.sample(objects, min(4, len(objects))):
            found += [field_of(one, member) for member in one.struct.members if isinstance(member, Field)]
        arrays = self.all_arrays(draw, must_own)
        for array in draw.sample(arrays, min(3, len(arrays))):
            found.append(Value(f"{array.text}[{self.index(draw, array.length)}]", array.scalar, array.is_owned))
        return found

    def links(self, draw, must_own=False):
        return [(one, member) for one in self.all_objects(draw, must_own) for member in one.struct.members
                if isinstance(member, Link)]

    def views(self, draw, must_own=False):
        return [(one, member) for one in self.all_objects(draw, must_own) for member in one.struct.members
                if isinstance(member, View)]


def field_of(one, member):
    return Value(one.access + member.name, member.scalar, one.is_owned, bool(member.width))


def parts_of(draw, scope, one):
    """The structs in a struct, and in those."""
    found = []
    for member in one.struct.members:
        if isinstance(member, Part):
            found.append(named(one.access + member.name, member.struct, one.is_owned, one.is_nvm, one.lasts))
        elif isinstance(member, Parts):
            at = scope.index(draw, member.length)
            found.append(named(f"{one.access}{member.name}[{at}]", member.struct, one.is_owned, one.is_nvm, one.lasts))
        else:
            continue
        found += parts_of(draw, scope, found[-1])
    return found
