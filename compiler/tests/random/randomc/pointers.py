"""Pointers in objects, objects that are copied, and memory that is looked at as bytes."""

from .body import DEPTH_MAX, kind
from .data import BOOL, I32, I64, U32, U64, Field
from .expressions import bounded, condition, integer
from .loops import draw_array
from .scope import Array, field_of, named, through
from .tree import Node


def target(writer, struct, must_last=False, must_own=True):
    """The address of an object in NVM of the type, or None."""
    found = [one for one in writer.scope.all_objects(writer.draw) if one.is_nvm and one.is_like(struct, must_own)
             and (one.lasts or not must_last)]
    return writer.draw.choice(found).address if found else None


@kind(5)
def link(writer):
    """A pointer in an object changes."""
    links = writer.scope.links(writer.draw, must_own=True)
    if not links:
        return None
    one, member = writer.draw.choice(links)
    if writer.draw.chance(0.1):
        return Node(f"{one.access}{member.name} = NULL;")
    return pointed(writer, one, member)


def pointed(writer, one, member):
    """A pointer gets a target: an object that is there, or a new one."""
    # A weak pointer to something that is freed would be null in NVM only.
    value = target(writer, member.struct, must_last=member.is_weak)
    place = f"{one.access}{member.name}"
    if value:
        return Node(f"{place} = {value};")
    if member.is_weak or not writer.can_pay(30):
        return Node(f"{place} = NULL;")
    writer.pay(30)
    name = member.struct.name
    return Node(f"{place} = ALLOC(1, struct {name});", f"fill_{name}({place}, {writer.draw.randrange(1000)});")


@kind(4)
def follow(writer):
    """A block in which what a pointer leads to is an object like others."""
    draw = writer.draw
    links = writer.scope.links(draw)
    if not links or writer.depth >= DEPTH_MAX:
        return None
    one, member = draw.choice(links)
    name = writer.name("q")
    inner = writer.inner()
    inner.scope.objects.append(through(name, member.struct, one.is_owned))
    pointer = f"NVL struct {member.struct.name} *{name}"
    if draw.chance(0.3):
        return Node("{", f"    {pointer} = {one.access}{member.name};", f"    if ({name}) {{", inner.block(), "    }", "}")
    return Node(f"if ({one.access}{member.name}) {{", f"    {pointer} = {one.access}{member.name};", inner.block(), "}")


@kind(1)
def chase(writer):
    """A pointer that follows others, for a while."""
    draw = writer.draw
    links = [(one, member) for one, member in writer.scope.links(draw) if one.is_owned and one.is_nvm
             and member.struct is one.struct]
    if not links or writer.depth >= DEPTH_MAX or not writer.can_repeat(4):
        return None
    one, member = draw.choice(links)
    name, count = writer.name("q"), writer.name("i")
    inner = writer.inner(4)
    inner.scope.objects.append(through(name, one.struct))
    return Node("{", f"    NVL struct {one.struct.name} *{name} = {one.address};",
                f"    for (int {count} = 0; {name} && {count} < 4; {count}++, {name} = {name}->{member.name}) {{",
                inner.block(2), "    }", "}")


@kind(2)
def view(writer):
    """A pointer in an object to an array of another one."""
    draw = writer.draw
    views = writer.scope.views(draw, must_own=True)
    if not views:
        return None
    return viewed(writer, *draw.choice(views))


def viewed(writer, one, member):
    place = f"{one.access}{member.name}"
    array = draw_array(writer, True, lambda found: found.is_nvm and found.scalar is member.scalar
                       and found.length >= member.length)
    if not array:
        if not writer.can_pay(10):
            return Node(f"{place} = NULL;")
        writer.pay(10)
        return Node(f"{place} = ALLOC({member.length}, {member.scalar.name});")
    first = writer.draw.randrange(array.length - member.length + 1)
    return Node(f"{place} = {array.text if first == 0 else f'&{array.text}[{first}]'};")


@kind(3)
def pointer_to_array(writer):
    """An array behind a variable, as the parameters of functions are."""
    array = draw_array(writer, True, lambda one: one.is_nvm)
    if not array:
        return None
    name, first = writer.name("v"), writer.draw.choice([0, 0, writer.draw.randrange(array.length)])
    writer.scope.arrays.append(Array(name, array.scalar, array.length - first))
    return Node(f"NVL {array.scalar.name} *{name} = {array.text}{f' + {first}' if first else ''};", keep=True)


@kind(2)
def through_view(writer):
    draw = writer.draw
    views = writer.scope.views(draw)
    if not views or writer.depth >= DEPTH_MAX:
        return None
    one, member = draw.choice(views)
    name = writer.name("v")
    inner = writer.inner()
    inner.scope.arrays.append(Array(name, member.scalar, member.length, one.is_owned))
    return Node("{", f"    NVL {member.scalar.name} *{name} = {one.access}{member.name};", f"    if ({name}) {{", inner.block(),
                "    }", "}")


def filled(writer, one):
    """Gives all numbers of a new object values; pointers stay null."""
    return f"fill_{one.struct.name}({one.address}, {integer(writer.draw, writer.scope, 1)[0]});"


@kind(3)
def allocation(writer):
    """A new object, which takes a pointer's old target's place."""
    draw = writer.draw
    links = [(one, member) for one, member in writer.scope.links(draw, must_own=True) if not member.is_weak]
    if not links or writer.depth >= DEPTH_MAX or not writer.can_pay(30) or writer.times > 40:
        return None
    writer.pay(30)
    one, member = draw.choice(links)
    name, struct = writer.name("q"), member.struct
    count = draw.choice([1, 1, 1, 3])
    inner = writer.inner()
    inner.scope.objects.append(through(name, struct))
    lines = ["{", f"    NVL struct {struct.name} *{name} = ALLOC({count}, struct {struct.name});"]
    place = f"{name} + {draw.randrange(count)}" if count > 1 else name
    fills = filled(writer, inner.scope.objects[-1])
    if draw.chance(0.5):
        return Node(*lines, "    " + fills, inner.block(2), f"    {one.access}{member.name} = {place};", "}")
    return Node(*lines, f"    {one.access}{member.name} = {place};", "    " + fills, inner.block(2), "}")


def copied(writer):
    """A pair of objects of one type: the first one may be assigned the second one. Or None."""
    draw = writer.draw
    scope = writer.scope
    pairs = []
    objects = scope.all_objects(draw)
    for to in objects:
        for source in objects:
            may = to.struct is source.struct and to.is_owned and to is not source and to.struct.is_copied
            # Variables of the type are made where there may be some.
            if may and (source.is_owned or not to.struct.has_pointers):
                pairs.append((to, source))
    return draw.choice(pairs) if pairs else None


@kind(6)
def copy_object(writer):
    draw = writer.draw
    pair = copied(writer)
    if not pair:
        return None
    to, source = pair
    writer.scope.recent += [field_of(to, member) for member in to.struct.members if isinstance(member, Field)][:2]
    if draw.chance(0.25):
        function = "memmove" if to.is_nvm == source.is_nvm else draw.choice(["memcpy", "memmove"])
        return Node(f"{function}({to.address}, {source.address}, sizeof({to.lvalue}));")
    return Node(f"{to.lvalue} = {source.lvalue};")


@kind(3)
def variable_of_struct(writer):
    """A copy in volatile memory."""
    draw = writer.draw
    found = [one for one in writer.scope.all_objects(draw) if not one.struct.is_nvm_only
             and (one.is_owned or not one.struct.has_pointers)]
    if not found:
        return None
    one = draw.choice(found)
    name, struct = writer.name("s"), one.struct
    how = draw.weighted([(6, "="), (2, "memcpy"), (1, "null")])
    if how == "memcpy":
        node = Node(f"struct {struct.name} {name};", f"memcpy(&{name}, {one.address}, sizeof {name});", keep=True)
    else:
        node = Node(f"struct {struct.name} {name} = {one.lvalue if how == '=' else '{0}'};", keep=True)
    writer.scope.objects.append(named(name, struct, is_nvm=False))
    return node


@kind(2)
def swap(writer):
    draw = writer.draw
    pair = copied(writer)
    if not pair or pair[0].struct.is_nvm_only or not pair[1].is_owned:
        return None
    to, source = pair
    name = writer.name("s")
    return Node("{", f"    struct {to.struct.name} {name} = {to.lvalue};", f"    {to.lvalue} = {source.lvalue};",
                f"    {source.lvalue} = {name};", "}")


@kind(1)
def clear_object(writer):
    draw = writer.draw
    found = [one for one in writer.scope.all_objects(draw, must_own=True) if one.struct.is_copied]
    if not found:
        return None
    one = draw.choice(found)
    if one.struct.is_nvm_only or draw.chance(0.6):
        return Node(f"memset({one.address}, 0, sizeof({one.lvalue}));")
    return Node(f"{one.lvalue} = (struct {one.struct.name}){{0}};")


@kind(4)
def move_bytes(writer):
    """memmove and memcpy of numbers, by a length that is constant or not."""
    draw = writer.draw
    to = draw_array(writer)
    source = draw_array(writer, False, lambda one: to and one.scalar is to.scalar)
    if not to or not source:
        return None
    length = min(to.length, source.length)
    shift = draw.randrange(1 + to.length - length)
    count = str(length) if draw.chance(0.3) else f"({bounded(draw, writer.scope, length + 1)})"
    function = "memmove" if to.is_nvm == source.is_nvm else draw.choice(["memcpy", "memmove"])
    return Node(f"{function}(&{to.text}[{shift}], {source.text}, {count} * sizeof({to.scalar.name}));")


@kind(3)
def set_bytes(writer):
    draw = writer.draw
    array = draw_array(writer)
    if not array:
        return None
    byte = draw.choice(["0", "255", "85", f"(int){integer(draw, writer.scope, 0)[0]}"])
    if array.scalar.is_real or array.scalar is BOOL:
        byte = "0"
    first = draw.randrange(array.length)
    rest = array.length - first
    count = str(rest) if draw.chance(0.3) else f"({bounded(draw, writer.scope, rest + 1)})"
    return Node(f"memset(&{array.text}[{first}], {byte}, {count} * sizeof({array.scalar.name}));")


@kind(1)
def as_bytes(writer):
    """Numbers that are changed byte by byte."""
    draw = writer.draw
    array = draw_array(writer, True, lambda one: one.is_nvm and not one.scalar.is_real and one.scalar is not BOOL)
    size = array.length * array.scalar.bits // 8 if array else 0
    if not array or not writer.can_repeat(size):
        return None
    writer.pay(size)
    name, i = writer.name("b"), writer.name("i")
    return Node("{", f"    NVL unsigned char *{name} = (NVL unsigned char *){array.text};",
                f"    for (size_t {i} = 0; {i} < {size}; {i} += {draw.choice([1, 1, 2, 3])})",
                f"        {name}[{i}] ^= (unsigned char)({i} + {integer(draw, writer.scope, 1)[0]});", "}")


@kind(1)
def distance(writer):
    """Pointers into one array are compared and subtracted."""
    draw = writer.draw
    array = draw_array(writer, True, lambda one: one.is_nvm and not one.scalar.is_real)
    if not array:
        return None
    p, q = writer.name("p"), writer.name("p")
    n = array.length
    return Node("{", f"    NVL {array.scalar.name} *{p} = &{array.text}[{bounded(draw, writer.scope, n)}];",
                f"    NVL {array.scalar.name} *{q} = {array.text} + ({bounded(draw, writer.scope, n)});",
                f"    if ({p} {draw.choice(['<', '>=', '!='])} {q})", f"        *{p} = ({array.scalar.name})({p} - {q});",
                f"    else if ({condition(draw, writer.scope)})", f"        *{q} = *{p};", "}")


@kind(1)
def atomic_operation(writer):
    """Operations of processors that are atomic, which has nothing to do with transactions."""
    draw = writer.draw
    found = [value for value in writer.scope.numbers(draw, must_own=True)
             if value.scalar in (I32, I64, U32, U64) and not value.is_bits and "->" in value.text]
    if not found:
        return None
    place = draw.choice(found)
    operand = f"({place.scalar.name}){integer(draw, writer.scope, 1)[0]}"
    if draw.chance(0.3):
        expected = writer.name("x")
        return Node("{", f"    {place.scalar.name} {expected} = {operand};",
                    f"    __atomic_compare_exchange_n(&{place.text}, &{expected}, {operand}, 0, "
                    "__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);", "}")
    name = draw.choice(["fetch_add", "fetch_sub", "fetch_xor", "fetch_or", "exchange_n", "add_fetch"])
    if name == "exchange_n" and draw.chance(0.5):
        return Node(f"__atomic_store_n(&{place.text}, {operand}, __ATOMIC_RELEASE);")
    return Node(f"__atomic_{name}(&{place.text}, {operand}, __ATOMIC_RELAXED);")
