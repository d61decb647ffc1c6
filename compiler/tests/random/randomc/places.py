"""The data of a program: what its root and the areas of its steps hold, and how that gets its first values, is named and summed.

`at` is what stands before a name, `x` an expression of 64 bits that the first values depend on.
"""

from dataclasses import dataclass

from .data import F64, INTEGERS, LENGTHS, WEIGHTED, Scalar, Struct
from .scope import Array, Head, Objects, Value, named, through
from .sums import summed, value_of


@dataclass(frozen=True)
class NumberPlace:
    name: str
    scalar: Scalar

    def declare(self):
        return f"{self.scalar.name} {self.name};"

    def set_up(self, at, draw, x):
        return [f"{at}{self.name} = ({self.scalar.name}){x} + {draw.randrange(100)};"]

    def bind(self, scope, at, is_owned):
        scope.values.append(Value(at + self.name, self.scalar, is_owned))

    def total(self, at):
        return [summed(self.scalar, at + self.name)]


@dataclass(frozen=True)
class ObjectPlace:
    """An object, or a row of them, in its place or behind a pointer."""

    name: str
    struct: Struct
    # 0 for an object that is alone.
    length: int
    is_pointer: bool

    def declare(self):
        if self.is_pointer:
            return f"NVL struct {self.struct.name} *{self.name};"
        return f"struct {self.struct.name} {self.name}{f'[{self.length}]' if self.length else ''};"

    def set_up(self, at, draw, x):
        text, struct = at + self.name, self.struct.name
        lines = [f"{text} = ALLOC({self.length or 1}, struct {struct});"] if self.is_pointer else []
        if not self.length:
            return lines + [f"fill_{struct}({'' if self.is_pointer else '&'}{text}, {x} + {draw.randrange(1000)});"]
        return lines + [f"for (int i = 0; i < {self.length}; i++)",
                        f"    fill_{struct}(&{text}[i], {x} + {draw.randrange(1000)} + (uint64_t)i);"]

    def bind(self, scope, at, is_owned):
        text = at + self.name
        if self.length:
            scope.rows.append(Objects(text, self.struct, self.length, is_owned, lasts=True))
        elif self.is_pointer:
            scope.objects.append(through(text, self.struct, is_owned, lasts=True))
        else:
            scope.objects.append(named(text, self.struct, is_owned, lasts=True))

    def total(self, at):
        text, struct = at + self.name, self.struct.name
        if self.length:
            return [f"for (int i = 0; i < {self.length}; i++)", f"    h = sum_{struct}(h, &{text}[i], 2);"]
        return [f"h = sum_{struct}(h, {'' if self.is_pointer else '&'}{text}, 2);"]


@dataclass(frozen=True)
class ArrayPlace:
    name: str
    scalar: Scalar
    # 0 for one that has no rows.
    rows: int
    length: int
    is_pointer: bool

    def declare(self):
        scalar, name, length = self.scalar.name, self.name, self.length
        if self.is_pointer:
            return f"NVL {scalar} (*{name})[{length}];" if self.rows else f"NVL {scalar} *{name};"
        return f"{scalar} {name}{f'[{self.rows}]' if self.rows else ''}[{length}];"

    def set_up(self, at, draw, x):
        text, scalar, start = at + self.name, self.scalar.name, draw.randrange(1000)
        lines = []
        if self.is_pointer:
            lines = [f"{text} = ALLOC({self.rows}, {scalar}[{self.length}]);" if self.rows else
                     f"{text} = ALLOC({self.length}, {scalar});"]
        value = value_of(self.scalar, f"mix({x} + {start}, (uint64_t)i)")
        if self.rows:
            return lines + [f"for (int i = 0; i < {self.rows * self.length}; i++)",
                            f"    {text}[i / {self.length}][i % {self.length}] = {value};"]
        return lines + [f"for (int i = 0; i < {self.length}; i++)", f"    {text}[i] = {value};"]

    def bind(self, scope, at, is_owned):
        text = at + self.name
        if self.rows:
            scope.tables.append(Rows(text, self.scalar, self.rows, self.length, is_owned))
        else:
            scope.arrays.append(Array(text, self.scalar, self.length, is_owned, name=text))

    def total(self, at):
        text = at + self.name
        if self.rows:
            return [f"for (int i = 0; i < {self.rows * self.length}; i++)",
                    "    " + summed(self.scalar, f"{text}[i / {self.length}][i % {self.length}]")]
        return [f"for (int i = 0; i < {self.length}; i++)", "    " + summed(self.scalar, f"{text}[i]")]


@dataclass(frozen=True)
class Rows:
    text: str
    scalar: Scalar
    rows: int
    length: int
    is_owned: bool = True


@dataclass(frozen=True)
class HeadPlace:
    name: str
    chain: object

    def declare(self):
        return f"NVL struct {self.chain.struct.name} *{self.name};"

    def set_up(self, at, draw, x):
        name = self.chain.struct.name
        begin = "insert" if self.chain.is_tree else "push"
        count, key = draw.randrange(7), f"(int32_t)mix({x} + (uint64_t)i, {draw.randrange(100)}) & 63"
        return [f"for (int i = 0; i < {count}; i++)", f"    {name}_{begin}(&{at}{self.name}, {key}, (uint64_t)i);"]

    def bind(self, scope, at, is_owned):
        scope.heads.append(Head(at + self.name, self.chain, is_owned))

    def total(self, at):
        return [f"h = sum_all_{self.chain.struct.name}(h, {at}{self.name});"]


def draw_places(draw, structs, chains, count):
    """Data with something of each kind."""
    places = [HeadPlace(f"h{number}", chain) for number, chain in enumerate(chains * 2)]
    places.append(ArrayPlace("m0", draw.weighted(WEIGHTED), draw.choice([2, 3, 5]), draw.choice([4, 7, 16]), draw.chance(0.4)))
    # Several arrays of one type can change places.
    scalar, length = draw.choice(INTEGERS + [F64]), draw.choice(LENGTHS)
    places += [ArrayPlace(f"v{number}", scalar, 0, length, True) for number in range(2)]
    for number in range(2, 2 + count // 3):
        places.append(ArrayPlace(f"v{number}", draw.choice(INTEGERS + [F64]), 0, draw.choice(LENGTHS), draw.chance(0.5)))
    for number in range(count):
        struct = structs[number % len(structs)]
        places.append(ObjectPlace(f"o{number}", struct, draw.choice([0, 0, 0, 3, 5]), draw.chance(0.5)))
    places += [NumberPlace(f"x{number}", draw.weighted(WEIGHTED)) for number in range(2)]
    draw.shuffle(places)
    return places
