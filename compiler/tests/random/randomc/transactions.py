"""Transactions in functions: blocks and loops behind the pragma, with clauses."""

from .body import ATOMIC_COST, DEPTH_MAX, kind
from .expressions import bounded, condition
from .loops import over_anything, over_array
from .statements import leave
from .tree import Node


def segment(writer, must_own):
    """Something in NVM that a clause may name, or None."""
    draw = writer.draw
    found = [one.lvalue for one in writer.scope.all_objects(draw) if one.is_nvm and one.is_owned == must_own]
    for array in writer.scope.all_arrays(draw):
        if array.is_nvm and array.is_owned == must_own:
            first = draw.randrange(array.length)
            count = draw.choice([str(array.length - first), bounded(draw, writer.scope, array.length - first + 1)])
            found.append(f"{array.text}[{first}:{count}]")
    return draw.choice(found) if found else None


def clauses(writer):
    draw = writer.draw
    if draw.chance(0.6):
        return ""
    texts = []
    owned = segment(writer, must_own=True)
    if owned:
        texts.append(f"{'clobber' if writer.may_clobber and draw.chance(0.5) else 'backup'}({owned})")
    # What is not owned may be the same as what is, but in a step.
    other = segment(writer, must_own=False) if writer.is_step else None
    if other and draw.chance(0.5):
        texts.append(f"readonly({other})")
    if draw.chance(0.3):
        texts.append(f"default({'clobber' if writer.may_clobber and draw.chance(0.5) else 'backup'})")
    return " ".join(texts)


@kind(6)
def atomic(writer):
    draw = writer.draw
    if writer.depth >= DEPTH_MAX or not writer.can_pay(ATOMIC_COST):
        return None
    pragma = f"ATOMIC({clauses(writer)})"
    writer.pay(ATOMIC_COST)
    inner = writer.inner()
    if draw.chance(0.25):
        # The loop itself is the statement.
        made = draw.choice([over_array, over_anything])(inner)
        if made:
            made.keep = True
        return Node(pragma, [made]) if made else None
    body = inner.block()
    out = leave(inner) if draw.chance(0.3) else None
    if out:
        body.insert(draw.randrange(len(body) + 1), Node(f"if ({condition(draw, writer.scope)})", f"    {out}"))
    return Node(pragma, "{", body, "}")
