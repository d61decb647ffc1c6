"""Types: numbers, and structs of them with pointers to each other."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scalar:
    name: str
    bits: int
    is_signed: bool
    is_real: bool = False


BOOL = Scalar("_Bool", 1, False)
I8, I16, I32, I64 = (Scalar(f"int{bits}_t", bits, True) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (Scalar(f"uint{bits}_t", bits, False) for bits in (8, 16, 32, 64))
F32, F64 = Scalar("float", 32, True, True), Scalar("double", 64, True, True)
INTEGERS = [I8, I16, I32, I64, U8, U16, U32, U64]
WEIGHTED = [(1, BOOL), (2, I8), (2, I16), (5, I32), (3, I64), (3, U8), (2, U16), (4, U32), (4, U64), (1, F32), (3, F64)]


@dataclass(frozen=True)
class Field:
    """A number, maybe of a few bits."""

    name: str
    scalar: Scalar
    width: int = 0

    def declare(self):
        if self.width:
            return f"{'int' if self.scalar.is_signed else 'unsigned'} {self.name} : {self.width};"
        return f"{self.scalar.name} {self.name};"


@dataclass(frozen=True)
class Row:
    """An array of numbers."""

    name: str
    scalar: Scalar
    length: int

    def declare(self):
        return f"{self.scalar.name} {self.name}[{self.length}];"


@dataclass(frozen=True)
class Table:
    """Rows of numbers."""

    name: str
    scalar: Scalar
    rows: int
    length: int

    def declare(self):
        return f"{self.scalar.name} {self.name}[{self.rows}][{self.length}];"


@dataclass(frozen=True)
class Part:
    """A struct in the struct."""

    name: str
    struct: "Struct"

    def declare(self):
        return f"struct {self.struct.name} {self.name};"


@dataclass(frozen=True)
class Parts:
    """An array of structs."""

    name: str
    struct: "Struct"
    length: int

    def declare(self):
        return f"struct {self.struct.name} {self.name}[{self.length}];"


@dataclass(frozen=True)
class Link:
    """A pointer to an object, or null. It may be declared as one in NVM; a weak one is."""

    name: str
    struct: "Struct"
    qualifier: str = ""

    @property
    def is_weak(self):
        return self.qualifier == "WEAK "

    def declare(self):
        return f"NVL struct {self.struct.name} *{self.qualifier}{self.name};"


@dataclass(frozen=True)
class View:
    """A pointer to so many numbers at least, or null."""

    name: str
    scalar: Scalar
    length: int

    def declare(self):
        return f"NVL {self.scalar.name} *{self.name};"


@dataclass(eq=False)
class Struct:
    name: str
    members: list = field(default_factory=list)
    # Members that only code of its own knows: the links of a list.
    chain: list = field(default_factory=list)

    @property
    def has_pointers(self):
        return bool(self.chain) or any(
            isinstance(m, (Link, View)) or isinstance(m, (Part, Parts)) and m.struct.has_pointers for m in self.members)

    @property
    def is_nvm_only(self):
        """Whether a member is declared to be in NVM: no variable may have the type."""
        return any("NVL " in line[4:] or "WEAK" in line for line in self.chain) or any(
            isinstance(m, Link) and m.qualifier or isinstance(m, (Part, Parts)) and m.struct.is_nvm_only
            for m in self.members)

    @property
    def is_copied(self):
        """Whether assignments may copy it: not what lists are made of, which would get circles."""
        return not self.chain

    def declare(self):
        return [f"struct {self.name} {{", *(f"    {line}" for line in self.chain),
                *(f"    {member.declare()}" for member in self.members), "};"]


LENGTHS = [3, 4, 5, 8, 13, 16, 17, 31, 33, 64]


def draw_member(draw, name, structs, inner):
    """A member of a struct: `inner` are the structs that are complete, `structs` those that may be pointed to."""
    kind = draw.weighted([(8, Field), (2, "bits"), (4, Row), (1, Table), (2 if inner else 0, Part), (1 if inner else 0, Parts),
                          (2, Link), (1, View)])
    if kind == "bits":
        scalar = draw.choice([I32, U32])
        return Field(name, scalar, draw.randrange(1 if scalar == U32 else 2, 24))
    if kind is Field:
        return Field(name, draw.weighted(WEIGHTED))
    if kind is Row:
        return Row(name, draw.weighted(WEIGHTED), draw.choice(LENGTHS))
    if kind is Table:
        return Table(name, draw.weighted(WEIGHTED), draw.choice([2, 3, 5]), draw.choice([3, 4, 7, 16]))
    if kind is Part:
        return Part(name, draw.choice(inner))
    if kind is Parts:
        return Parts(name, draw.choice(inner), draw.randrange(2, 5))
    if kind is Link:
        return Link(name, draw.choice(structs), draw.weighted([(5, ""), (1, "NVL "), (2, "WEAK ")]))
    return View(name, draw.choice(INTEGERS + [F64]), draw.choice([4, 6]))


def draw_structs(draw, count):
    """Structs that contain and point to each other. The first ones are small, as values in registers are."""
    structs = [Struct(f"s{number}") for number in range(count)]
    for number, struct in enumerate(structs):
        if number == 0:
            struct.members = [Field("a", draw.choice(INTEGERS)), Field("b", draw.choice(INTEGERS + [F64]))]
        elif number == 1 and draw.chance(0.5):
            struct.members = [Link("a", draw.choice(structs))]
        else:
            # A large one has no large parts, or sizes would multiply.
            inner = [one for one in structs[:number] if len(one.members) < 4]
            struct.members = [draw_member(draw, chr(ord("a") + at), structs, inner) for at in range(draw.randrange(2, 8))]
    if draw.chance(0.6):
        structs[-1].members.append(Link("w", draw.choice(structs), "WEAK "))
    return structs
