"""Statements that any C program has: assignments, conditions, switches, jumps."""

from .body import DEPTH_MAX, kind
from .data import BOOL, F64, INTEGERS, LENGTHS, WEIGHTED, Scalar
from .expressions import UNSIGNED, bounded, condition, integer, of_type, promoted
from .scope import Array, Value
from .tree import Node


def draw_target(writer, wants=lambda value: True):
    found = [value for value in writer.scope.numbers(writer.draw, must_own=True) if wants(value)]
    return writer.draw.choice(found) if found else None


def assign(writer, target):
    """The text of an assignment to a number."""
    text = assignment_to(writer, target)
    writer.scope.recent.append(target)
    return text


def assignment_to(writer, target):
    draw, scope, scalar = writer.draw, writer.scope, target.scalar
    how = draw.weighted([(6, "="), (3, "op="), (1, "++")])
    wraps = not scalar.is_real and scalar is not BOOL and (scalar.bits < 32 or not scalar.is_signed) and not target.is_bits
    if how == "++" and wraps:
        # Less than an int does so when it is stored.
        return draw.choice([f"{target.text}++;", f"--{target.text};"])
    if how == "op=" and not scalar.is_real and scalar is not BOOL:
        if not scalar.is_signed and scalar.bits >= 32 and not target.is_bits:
            return f"{target.text} {draw.choice(['+=', '-=', '^=', '|=', '&=', '*='])} ({scalar.name}){integer(draw, scope)[0]};"
        return f"{target.text} {draw.choice(['^=', '|=', '&='])} {integer(draw, scope)[0]};"
    if how == "op=" and scalar is F64:
        return f"{target.text} = fold({target.text} {draw.choice('+-')} {of_type(draw, scope, F64, 1)});"
    return f"{target.text} = {of_type(draw, scope, scalar)};"


@kind(12)
def assignment(writer):
    target = draw_target(writer)
    return Node(assign(writer, target)) if target else None


@kind(4)
def assignments(writer):
    """Stores that follow each other: the optimizer makes one of neighbours, and forgets those that are overwritten."""
    draw = writer.draw
    objects = [one for one in writer.scope.all_objects(draw, must_own=True)]
    if not objects:
        return None
    one = draw.choice(objects)
    scope = writer.scope.inner()
    scope.objects, scope.rows, scope.arrays, scope.tables, scope.values = [one], [], [], [], []
    targets = scope.numbers(draw, must_own=True)
    return Node("{", [Node(assign(writer, target)) for target in targets], "}") if targets else None


@kind(3)
def variable(writer):
    draw = writer.draw
    scalar = draw.weighted(WEIGHTED)
    name = writer.name("x")
    node = Node(f"{scalar.name} {name} = {of_type(draw, writer.scope, scalar)};", keep=True)
    writer.scope.values.append(Value(name, scalar))
    return node


@kind(2)
def local_array(writer):
    draw = writer.draw
    scalar = draw.choice(INTEGERS + [F64])
    name, length = writer.name("t"), draw.choice(LENGTHS)
    values = ", ".join(str(draw.randrange(100)) for _ in range(draw.randrange(1, 1 + min(length, 5))))
    node = Node(f"{scalar.name} {name}[{length}] = {{{values}}};", keep=True)
    writer.scope.arrays.append(Array(name, scalar, length, is_nvm=False, name=name))
    return node


@kind(4)
def choice(writer):
    if writer.depth >= DEPTH_MAX:
        return None
    test = condition(writer.draw, writer.scope)
    if writer.draw.chance(0.4):
        return Node(f"if ({test}) {{", writer.inner().block(), "} else {", writer.inner().block(), "}")
    return Node(f"if ({test}) {{", writer.inner().block(), "}")


@kind(1)
def switch(writer):
    draw = writer.draw
    if writer.depth >= DEPTH_MAX:
        return None
    count = draw.randrange(2, 5)
    cases = []
    for case in range(count):
        inner = writer.inner()
        inner.can_break = True
        label = "default:" if case == count - 1 and draw.chance(0.6) else f"case {case}:"
        cases.append(Node(f"{label} {{", inner.block(2), "}" if draw.chance(0.25) else "} break;", keep=True))
    return Node(f"switch ({bounded(draw, writer.scope, count + 1)}) {{", cases, "}")


def leave(writer):
    """The text of a jump out of this block, or None."""
    draw = writer.draw
    ways = []
    if writer.can_break:
        ways.append((3, lambda: "break;"))
    if writer.can_continue:
        ways.append((2, lambda: "continue;"))
    if writer.labels:
        ways.append((2, lambda: f"goto {draw.choice(writer.labels)};"))
    if writer.leave:
        ways.append((1, writer.leave))
    return draw.weighted(ways)() if ways else None


@kind(3)
def way_out(writer):
    text = leave(writer)
    return Node(f"if ({condition(writer.draw, writer.scope)})", [Node(text, keep=True)]) if text else None


@kind(1)
def labelled(writer):
    """A block that jumps lead out of."""
    if writer.depth >= DEPTH_MAX:
        return None
    label = writer.name("out")
    inner = writer.inner()
    inner.labels += (label,)
    return Node("{", inner.block(4), "}", f"{label}:;")


@kind(1)
def table_of_labels(writer):
    """Jumps to addresses of labels: a function that has some cannot be copied."""
    draw = writer.draw
    if writer.depth >= DEPTH_MAX or not writer.spent.may_take_labels:
        return None
    writer.spent.may_take_labels = False
    name = writer.name("way")
    count = draw.randrange(2, 4)
    labels = [f"{name}_{number}" for number in range(count)]
    ways = [Node(f"{label}: {{", writer.inner().block(2), f"}} goto {name}_end;" if draw.chance(0.6) else "}", keep=True)
            for label in labels]
    return Node("{", f"    static const void *const {name}[] = {{{', '.join('&&' + label for label in labels)}}};",
                f"    goto *{name}[{bounded(draw, writer.scope, count)}];", ways, f"    {name}_end:;", "}")


def number_of(writer, scalar: Scalar):
    """An argument for a parameter of the type."""
    return f"({scalar.name}){of_type(writer.draw, writer.scope, scalar, 1)}" if not scalar.is_real \
        else of_type(writer.draw, writer.scope, scalar, 1)


def updated(writer, text, scalar, source):
    """`text` is made of itself and an integer, without overflow."""
    wide = promoted(scalar)
    if scalar.is_real:
        return f"{text} = fold({text} + real_of({source}));"
    unsigned = UNSIGNED[wide].name
    return f"{text} = ({wide.name})(({unsigned}){text} {writer.draw.choice('+^-')} ({unsigned}){source});"
