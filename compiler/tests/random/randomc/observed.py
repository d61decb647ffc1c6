"""What a statement does to a place, between two reads of it: whoever believes that it does nothing reads only once."""

from .body import DEPTH_MAX, kind
from .data import I32, Field, Link
from .expressions import promoted
from .loops import between, fill, over_array
from .pointers import as_bytes, atomic_operation, clear_object, copy_object, link, move_bytes, pointed, set_bytes, swap
from .scope import field_of
from .statements import assignment
from .tree import Node

CHANGES = [link, copy_object, copy_object, clear_object, move_bytes, set_bytes, assignment, atomic_operation, as_bytes, swap,
           over_array, between, fill]


def numbers_of(draw, scope, one):
    """Expressions for some integers that an object holds, each with its type."""
    found = [(field_of(one, member).text, promoted(member.scalar)) for member in one.struct.members
             if isinstance(member, Field) and not member.scalar.is_real]
    arrays = [array for array in scope.all_arrays(draw) if not array.scalar.is_real]
    for array in draw.sample(arrays, min(2, len(arrays))):
        found.append((f"{array.text}[{scope.index(draw, array.length)}]", promoted(array.scalar)))
    return found


def number_behind(draw, one, member):
    """The same for what a pointer leads to."""
    text = one.access + member.name
    fields = [field for field in member.struct.members if isinstance(field, Field) and not field.scalar.is_real]
    if not fields:
        return f"({text} != NULL)", I32
    field = draw.choice(fields)
    cast = promoted(field.scalar)
    return f"({text} ? ({cast.name}){text}->{field.name} : ({cast.name})7)", cast


@kind(6)
def observed(writer):
    draw = writer.draw
    objects = writer.scope.all_objects(draw, must_own=True)
    if not objects or writer.depth >= DEPTH_MAX:
        return None
    one = draw.choice(objects)
    same = [other for other in writer.scope.all_objects(draw) if other.struct is one.struct]
    inner = writer.inner()
    # Nothing else is there to be changed.
    inner.scope.objects = [one] + draw.sample(same, min(2, len(same)))
    inner.scope.rows, inner.scope.arrays, inner.scope.tables, inner.scope.heads = [], [], [], []
    inner.scope.values = [value for value in inner.scope.values if not value.is_owned or value.text.isidentifier()]
    links = [member for member in one.struct.members if isinstance(member, Link)]
    found = numbers_of(draw, inner.scope, one)
    changes = [node for node in (draw.choice(CHANGES)(inner) for _ in range(draw.randrange(1, 3))) if node]
    if links and (not found or draw.chance(0.5)):
        member = draw.choice(links)
        text, scalar = number_behind(draw, one, member)
        if draw.chance(0.6):
            changes.append(pointed(writer, one, member))
    elif found:
        text, scalar = draw.choice(found)
    else:
        return None
    before, after = writer.name("x"), writer.name("x")
    targets = [value for value in writer.scope.numbers(draw, must_own=True) if not value.scalar.is_real]
    if not targets or not changes:
        return None
    target = draw.choice(targets)
    inner.pay(3)
    return Node("{", f"    {scalar.name} {before} = {text};", changes, f"    {scalar.name} {after} = {text};",
                f"    {target.text} = (uint64_t){before} * 3 ^ (uint64_t){after};", "}")
