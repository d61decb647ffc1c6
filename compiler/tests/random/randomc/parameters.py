"""What functions take: how a parameter is declared, what it is in the body, and what may be passed for it."""

from dataclasses import dataclass

from .data import F64, I32, INTEGERS, LENGTHS, Scalar, Struct
from .expressions import bounded
from .loops import draw_array
from .pointers import target
from .scope import Array, Count, Head, Value, named, through
from .statements import number_of


@dataclass(frozen=True)
class ObjectParameter:
    """A pointer to an object in NVM, which is changed, or only read."""

    name: str
    struct: Struct
    is_owned: bool

    def declare(self):
        return f"NVL {'' if self.is_owned else 'const '}struct {self.struct.name} *{self.name}"

    def bind(self, scope):
        scope.objects.append(through(self.name, self.struct, self.is_owned))

    def argument(self, writer):
        return target(writer, self.struct, must_own=self.is_owned)

    def made(self, writer, name):
        return [f"NVL struct {self.struct.name} *{name} = ALLOC(1, struct {self.struct.name});",
                f"fill_{self.struct.name}({name}, {writer.draw.randrange(1000)});"]


@dataclass(frozen=True)
class ArrayParameter:
    name: str
    scalar: Scalar
    length: int
    is_nvm: bool
    is_owned: bool = True

    def declare(self):
        space = "NVL " if self.is_nvm else ""
        return f"{space}{'' if self.is_owned else 'const '}{self.scalar.name} *{self.name}"

    def bind(self, scope):
        scope.arrays.append(Array(self.name, self.scalar, self.length, self.is_owned, self.is_nvm))

    def argument(self, writer):
        array = draw_array(writer, self.is_owned, lambda one: one.scalar is self.scalar and one.is_nvm == self.is_nvm
                           and one.length >= self.length)
        if not array:
            return None
        first = writer.draw.randrange(array.length - self.length + 1)
        return f"&{array.text}[{first}]" if first else array.text

    def made(self, writer, name):
        if self.is_nvm:
            return [f"NVL {self.scalar.name} *{name} = ALLOC({self.length}, {self.scalar.name});"]
        return [f"{self.scalar.name} {name}[{self.length}] = {{{writer.draw.randrange(100)}}};"]


@dataclass(frozen=True)
class RestrictParameter:
    """An array that nothing else of the call leads to."""

    name: str
    scalar: Scalar
    length: int

    def declare(self):
        return f"NVL {self.scalar.name} *restrict {self.name}"

    def bind(self, scope):
        scope.arrays.append(Array(self.name, self.scalar, self.length))

    def argument(self, writer, taken):
        found = [array for array in writer.scope.arrays if array.is_owned and array.is_nvm and array.scalar is self.scalar
                 and array.length >= self.length and array.name and array.name not in taken]
        if not found:
            return None
        array = writer.draw.choice(found)
        taken.add(array.name)
        return array.text

    def made(self, writer, name):
        return [f"NVL {self.scalar.name} *{name} = ALLOC({self.length}, {self.scalar.name});"]


@dataclass(frozen=True)
class NumberParameter:
    name: str
    scalar: Scalar

    def declare(self):
        return f"{self.scalar.name} {self.name}"

    def bind(self, scope):
        scope.values.append(Value(self.name, self.scalar))

    def argument(self, writer):
        return number_of(writer, self.scalar)


@dataclass(frozen=True)
class CountParameter:
    """How much of an array is meant."""

    name: str
    limit: int

    def declare(self):
        return f"uint32_t {self.name}"

    def bind(self, scope):
        scope.counts.append(Count(self.name, self.limit))

    def argument(self, writer):
        return bounded(writer.draw, writer.scope, self.limit + 1)


@dataclass(frozen=True)
class StructParameter:
    """A struct that is passed by value."""

    name: str
    struct: Struct

    def declare(self):
        return f"struct {self.struct.name} {self.name}"

    def bind(self, scope):
        scope.objects.append(named(self.name, self.struct, is_nvm=False))

    def argument(self, writer):
        found = [one for one in writer.scope.all_objects(writer.draw) if one.struct is self.struct
                 and (one.is_owned or not self.struct.has_pointers)]
        return writer.draw.choice(found).lvalue if found else None

    def made(self, writer, name):
        return [f"struct {self.struct.name} {name} = {{0}};"]


@dataclass(frozen=True)
class HeadParameter:
    """The pointer that a list or a tree begins with."""

    name: str
    chain: object

    def declare(self):
        return f"NVL struct {self.chain.struct.name} *NVL *{self.name}"

    def bind(self, scope):
        scope.heads.append(Head(f"*{self.name}", self.chain))

    def argument(self, writer):
        found = [head.lvalue for head in writer.scope.heads if head.chain is self.chain and head.is_owned]
        if not found:
            return None
        text = writer.draw.choice(found)
        return text[1:] if text.startswith("*") else f"&{text}"

    def made(self, writer, name):
        """Nothing that is new begins a list."""
        return None


def draw_kernel(draw):
    """The parameters of a function that computes something over arrays."""
    scalars = [draw.choice(INTEGERS + [F64])]
    scalars += draw.choices([scalars[0], F64, I32], k=draw.randrange(1, 3))
    length = draw.choice([3, 4, 8, 16])
    if draw.chance(0.5):
        arrays = [RestrictParameter(letter, scalar, length) for letter, scalar in zip("uvw", scalars)]
    else:
        arrays = [ArrayParameter(letter, scalar, length, draw.chance(0.9), letter == "u" or draw.chance(0.6))
                  for letter, scalar in zip("uvw", scalars)]
    return [*arrays, CountParameter("n", length), NumberParameter("x", draw.choice(INTEGERS))]


def draw_parameters(draw, structs, chains):
    parameters = []
    for letter in "pqr"[:draw.randrange(1, 4)]:
        what = draw.weighted([(8, "object"), (4, "array"), (2, "head" if chains else "array"), (3, "value")])
        if what == "object":
            parameters.append(ObjectParameter(letter, draw.choice(structs), not parameters or draw.chance(0.7)))
        elif what == "array":
            parameters.append(ArrayParameter(letter, draw.choice(INTEGERS + [F64]), draw.choice([n for n in LENGTHS if n < 16]),
                                             draw.chance(0.8), draw.chance(0.8)))
        elif what == "head":
            parameters.append(HeadParameter(letter, draw.choice(chains)))
        else:
            passed = [one for one in structs if not one.is_nvm_only]
            if passed:
                parameters.append(StructParameter(letter, draw.choice(passed)))
    if draw.chance(0.7):
        parameters.append(NumberParameter("x", draw.choice(INTEGERS)))
    if draw.chance(0.2):
        parameters.append(NumberParameter("y", F64))
    return parameters
