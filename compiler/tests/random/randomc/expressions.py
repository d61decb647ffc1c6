"""Expressions without effects, defined for all values: overflow is that of unsigned numbers, and doubles stay small."""

from .data import BOOL, F32, F64, I32, I64, U32, U64, Field, Scalar

UNSIGNED = {I32: U32, I64: U64, U32: U32, U64: U64}
EDGES = ["0", "1", "-1", "2", "127", "128", "255", "256", "32767", "65535", "0x7fffffff", "0xffffffffu", "0x80000000u",
         "(-2147483647 - 1)", "0x7fffffffffffffff", "0xffffffffffffffffu", "0x123456789abcdef"]


def literal(draw):
    if draw.chance(0.3):
        text = draw.choice(EDGES)
        wide = len(text) > 14 or text == "0x123456789abcdef"
        if "u" in text:
            return text, U64 if wide else U32
        return text, I64 if wide and "(" not in text else I32
    return str(draw.randrange(-9, 100)) if draw.chance(0.2) else str(draw.randrange(100)), I32


def promoted(scalar):
    """The type of a number in an expression."""
    return I32 if scalar.bits < 32 else scalar


def operand(draw, scope, wants_real):
    """A number in scope, of the right kind, with its type; through a pointer if there is one."""
    if draw.chance(0.12):
        text = through_link(draw, scope, wants_real)
        if text:
            return text
    if not wants_real and scope.indices and draw.chance(0.25):
        return f"(uint32_t){draw.choice(scope.indices).text}", U32
    found = [value for value in scope.recent[-4:] if value.scalar.is_real == wants_real] if draw.chance(0.3) else []
    found = found or [value for value in scope.numbers(draw) if value.scalar.is_real == wants_real]
    if not found:
        return (f"{draw.randrange(100)}.{draw.choice(['0', '25', '5'])}", F64) if wants_real else literal(draw)
    value = draw.choice(found)
    # A member of a few bits is an int, or if it is unsigned and small, too.
    return value.text, I32 if value.is_bits and value.scalar.is_signed else value.scalar


def through_link(draw, scope, wants_real):
    links = scope.links(draw)
    if not links:
        return None
    one, link = draw.choice(links)
    fields = [member for member in link.struct.members if isinstance(member, Field) and member.scalar.is_real == wants_real]
    if not fields:
        return None
    member, text = draw.choice(fields), one.access + link.name
    # What ?: gives is of both types' common one: a number of a few bits or less gets an int.
    cast = F64 if wants_real else promoted(member.scalar)
    otherwise = "1.5" if wants_real else draw.randrange(50)
    return f"({text} ? ({cast.name}){text}->{member.name} : ({cast.name}){otherwise})", cast


def integer(draw, scope, depth=2):
    """The text of an expression, and its type."""
    if depth == 0 or draw.chance(0.25):
        return literal(draw) if draw.chance(0.2) else operand(draw, scope, False)
    kind = draw.weighted([(10, "sum"), (5, "bits"), (3, "shift"), (3, "quotient"), (3, "condition"), (2, "choice"), (2, "cast"),
                          (2, "negation"), (1, "real")])
    left, left_type = integer(draw, scope, depth - 1)
    if kind == "cast":
        to = draw.choice([I32, I64, U32, U64])
        return f"({to.name})({draw.choice(['int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t'])}){left}", to
    if kind == "negation":
        to = draw.choice([U32, U64])
        return f"{draw.choice('~-')}({to.name}){left}", to
    if kind == "condition":
        return f"({condition(draw, scope, depth - 1)})", I32
    if kind == "real":
        return f"integer_of({real(draw, scope, depth - 1)[0]})", I32
    right, right_type = integer(draw, scope, depth - 1)
    if kind == "sum" and left_type.bits <= 16 and right_type.bits <= 16:
        # What int holds.
        return f"({left} {draw.choice('+-')} {right})", I32
    to = draw.weighted([(3, I32), (4, U32), (2, I64), (2, U64)])
    if kind == "quotient":
        name = draw.choice([f"quotient{to.bits}", "rest32" if to.bits == 32 else "rest64"])
        return f"{name}({left}, {right})", {"rest32": I32, "rest64": U64, "quotient32": I32, "quotient64": I64}[name]
    if kind == "choice":
        return f"({condition(draw, scope, 0)} ? ({to.name}){left} : ({to.name}){right})", to
    unsigned = UNSIGNED[to].name
    if kind == "shift":
        operator = draw.choice(["<<", ">>"])
        return f"({to.name})(({unsigned}){left} {operator} ((uint32_t){right} & {to.bits - 1}))", to
    operator = draw.choice("&|^") if kind == "bits" else draw.weighted([(4, "+"), (3, "-"), (2, "*")])
    return f"({to.name})(({unsigned}){left} {operator} ({unsigned}){right})", to


def real(draw, scope, depth=2):
    if depth == 0 or draw.chance(0.3):
        if draw.chance(0.3):
            return f"real_of({integer(draw, scope, 0)[0]})", F64
        return operand(draw, scope, True)
    left, right = real(draw, scope, depth - 1)[0], real(draw, scope, depth - 1)[0]
    if draw.chance(0.1):
        return f"({left} / (1.0 + fold({right}) * fold({right})))", F64
    return f"fold({left} {draw.weighted([(3, '+'), (2, '-'), (2, '*')])} {right})", F64


def condition(draw, scope, depth=1):
    kind = draw.weighted([(5, "compare"), (2, "bit"), (1, "real"), (2 if depth else 0, "both"), (1, "link")])
    if kind == "both":
        return f"{condition(draw, scope, 0)} {draw.choice(['&&', '||'])} {condition(draw, scope, 0)}" if draw.chance(0.5) \
            else f"!({condition(draw, scope, 0)})"
    if kind == "link":
        links = scope.links(draw)
        if links:
            one, link = draw.choice(links)
            same = [other.address for other in scope.all_objects(draw) if other.is_nvm and other.struct is link.struct]
            text = one.access + link.name
            return f"{text} == {draw.choice(same)}" if same and draw.chance(0.5) else f"{text} {draw.choice(['==', '!='])} NULL"
        kind = "bit"
    if kind == "real":
        return f"{real(draw, scope, 0)[0]} {draw.choice('<>')} {real(draw, scope, 0)[0]}"
    left = integer(draw, scope, depth)[0]
    if kind == "bit":
        return f"((uint32_t){left} & {draw.choice([1, 1, 2, 3, 5, 16])}) {draw.choice(['==', '!='])} 0"
    right, _ = integer(draw, scope, 0)
    to = draw.choice([I32, U32, I64, U64])
    return f"({to.name}){left} {draw.choice(['<', '<=', '>', '==', '!='])} ({to.name}){right}"


def of_type(draw, scope, scalar: Scalar, depth=2):
    """An expression that may be assigned to a number of the type."""
    if scalar.is_real:
        # One that has the other's 24 bits is exact.
        text = real(draw, scope, depth)[0]
        return f"({scalar.name})fold({text})" if scalar is F32 else f"fold({text})"
    text = integer(draw, scope, depth)[0]
    if scalar is BOOL and draw.chance(0.5):
        return condition(draw, scope)
    return text


def bounded(draw, scope, limit):
    """A uint32_t below `limit`."""
    if draw.chance(0.15):
        return str(draw.choice([0, 1, limit - 1]))
    return f"(uint32_t){integer(draw, scope, 1)[0]} % {limit}"
