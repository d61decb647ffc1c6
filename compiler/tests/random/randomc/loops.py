"""Loops over arrays: of all the shapes that an optimizer makes something else of."""

from .body import DEPTH_MAX, kind
from .data import BOOL, I16, I32, I64, U8, U16, U32, U64
from .expressions import bounded, condition
from .scope import Index, Value
from .statements import assign, leave, updated
from .tree import Node

SIGNED = ["int", "int64_t"]
UNSIGNED = ["uint32_t", "size_t", "uint8_t", "uint16_t"]


def head(writer, limit):
    """The lines before and after a body, in which the Index counts below `limit` in some way, and how often it runs at most."""
    draw = writer.draw
    name = writer.name("i")
    kind_of_bound = draw.weighted([(4, "whole"), (2, "number"), (4, "variable")])
    before = []
    most = limit
    counts = [count for count in writer.scope.counts if count.limit <= limit]
    if counts and draw.chance(0.6):
        count = draw.choice(counts)
        high, most = count.text, count.limit
    elif kind_of_bound == "whole":
        high = str(limit)
    elif kind_of_bound == "number":
        most = draw.randrange(limit + 1)
        high = str(most)
    else:
        high = bounded(draw, writer.scope, limit + 1)
        if draw.chance(0.6):
            before = [f"uint32_t n{name} = {high};"]
            high = f"n{name}"
    low = draw.weighted([(5, 0), (2, draw.randrange(limit))])
    step = draw.weighted([(6, 1), (1, 2), (1, 3), (1, limit)])
    shape = draw.weighted([(8, "up"), (3, "down"), (2, "unsigned down"), (1, "while"), (1, "do"), (1, "variable step")])
    down = draw.choice(SIGNED)
    unsigned = draw.choice(UNSIGNED)
    increment = draw.choice([f"{name}++", f"++{name}"]) if step == 1 else f"{name} += {step}"
    if shape == "up":
        test = f"{name} < ({draw.choice(SIGNED)})({high})"
        lines = [f"for ({draw.choice(SIGNED + UNSIGNED)} {name} = {low}; {test}; {increment}) {{"], ["}"]
    elif shape == "down":
        decrement = f"{name}--" if step == 1 else f"{name} -= {step}"
        lines = [f"for ({down} {name} = ({down})({high}) - 1; {name} >= {low}; {decrement}) {{"], ["}"]
    elif shape == "unsigned down":
        lines = [f"for ({unsigned} {name} = {high}; {name}-- > 0;) {{"], ["}"]
    elif shape == "while":
        # Counted where the body begins: it may go on with the next round from anywhere.
        lines = ["{", f"    uint32_t next_{name} = {low};", f"    while (next_{name} < {high}) {{",
                 f"        uint32_t {name} = next_{name}++;"], ["    }", "}"]
    elif shape == "do":
        lines = ["{", f"    uint32_t next_{name} = {low};", "    do {", f"        uint32_t {name} = next_{name}++;"], \
                [f"    }} while (next_{name} < {high});", "}"]
    else:
        stride = f"1 + {bounded(draw, writer.scope, 4)}"
        lines = ["{", f"    uint32_t step_{name} = {stride};",
                 f"    for (uint32_t {name} = {low}; {name} < {high}; {name} += step_{name}) {{"], ["    }", "}"]
    if before:
        lines = ["{", *("    " + line for line in before), *("    " + line for line in lines[0])], \
                [*("    " + line for line in lines[1]), "}"]
    return lines[0], lines[1], Index(name, limit), most


def draw_array(writer, must_own=True, wants=lambda array: True):
    found = [array for array in writer.scope.all_arrays(writer.draw, must_own) if wants(array)]
    return writer.draw.choice(found) if found else None


def loop(writer, limit, make_body):
    """A loop with the body that a function makes for a Writer in it."""
    if writer.depth >= DEPTH_MAX or not writer.can_repeat(limit):
        return None
    before, after, index, most = head(writer, limit)
    inner = writer.inner(most, is_loop=True)
    inner.scope.indices.append(index)
    body = make_body(inner, index)
    inner.pay(len(body))
    return Node(*before, body, *after)


def element(array, index):
    return Value(f"{array.text}[{index}]", array.scalar)


@kind(6)
def over_array(writer):
    """Each element gets a value."""
    array = draw_array(writer)
    if not array:
        return None

    def body(inner, index):
        text = assign(inner, element(array, index.text))
        if inner.draw.chance(0.25):
            return [Node(f"if ({condition(inner.draw, inner.scope)})", [Node(text, keep=True)])]
        return [Node(text)]

    return loop(writer, array.length, body)


@kind(5)
def over_anything(writer):
    """Any statements, repeated."""
    return loop(writer, writer.draw.choice([2, 3, 5, 8, 16]), lambda inner, index: inner.block())


@kind(3)
def over_table(writer):
    """Loops in loops, also over triangles and columns."""
    draw = writer.draw
    tables = [table for table in writer.scope.tables if table.is_owned]
    if not tables or not writer.can_repeat(tables[0].rows * tables[0].length):
        return None
    table = draw.choice(tables)

    def inner_body(row):
        def body(inner, index):
            return [Node(assign(inner, Value(f"{table.text}[{row}][{index.text}]", table.scalar)))]

        return body

    def outer_body(inner, row):
        nodes = [loop(inner, table.length, inner_body(row.text)) or inner.statement()]
        return nodes + (inner.block(1) if draw.chance(0.3) else [])

    if draw.chance(0.25):
        by_columns = writer.name("j"), writer.name("i")
        column, row = by_columns
        inner = writer.inner(table.rows * table.length)
        inner.scope.indices += [Index(column, table.length), Index(row, table.rows)]
        start = f"{column} < {table.rows} ? {column} : 0" if draw.chance(0.3) else "0"
        return Node(f"for (int {column} = 0; {column} < {table.length}; {column}++)",
                    [Node(f"for (int {row} = {start}; {row} < {table.rows}; {row}++)",
                          [Node(assign(inner, Value(f"{table.text}[{row}][{column}]", table.scalar)), keep=True)], keep=True)])
    return loop(writer, table.rows, outer_body)


@kind(4)
def along(writer):
    """Elements that are made of their neighbours, or change places."""
    draw = writer.draw
    array = draw_array(writer, wants=lambda one: one.length > 2)
    if not array or not writer.can_repeat(array.length):
        return None
    writer.pay(array.length)
    i, a, n = writer.name("i"), array.text, array.length
    offset = draw.choice([1, 1, 2])
    count = draw.choice([str(n - offset), f"(int)({bounded(draw, writer.scope, n - offset + 1)})"])
    up, down = f"for (int {i} = 0; {i} < {count}; {i}++)", f"for (int {i} = {n - offset} - 1; {i} >= 0; {i}--)"
    if draw.chance(0.35):
        temporary = writer.name("x")
        return Node(f"for (int {i} = 0, j{i} = {n - 1}; {i} < j{i}; {i}++, j{i}--) {{",
                    f"    {array.scalar.name} {temporary} = {a}[{i}];", f"    {a}[{i}] = {a}[j{i}];",
                    f"    {a}[j{i}] = {temporary};", "}")
    here, there = draw.choice([(f"{a}[{i}]", f"{a}[{i} + {offset}]"), (f"{a}[{i} + {offset}]", f"{a}[{i}]")])
    if array.scalar is BOOL or draw.chance(0.5):
        return Node(draw.choice([up, down]), f"    {here} = {there};")
    if array.scalar.is_real:
        return Node(draw.choice([up, down]), f"    {here} = fold({here} + {there});")
    return Node(draw.choice([up, down]), "    " + updated(writer, here, array.scalar, there))


@kind(3)
def between(writer):
    """From one array to another one, also in another place of itself, from NVM and into it."""
    to = draw_array(writer)
    # A double need not fit into an integer.
    source = draw_array(writer, False, lambda one: to and (to.scalar.is_real or not one.scalar.is_real))
    if not to or not source:
        return None
    length = min(to.length, source.length)
    shift = writer.draw.randrange(1 + to.length - length)

    def body(inner, index):
        target = f"{to.text}[{index.text} + {shift}]" if shift else f"{to.text}[{index.text}]"
        value = f"{source.text}[{index.text}]"
        if to.scalar.is_real and not source.scalar.is_real:
            value = f"real_of({value})"
        return [Node(f"{target} = {value};")]

    return loop(writer, length, body)


@kind(4)
def fill(writer):
    """What memset could do as well."""
    array = draw_array(writer)
    value = writer.draw.choice(["0", "0", "1", "7"])
    return loop(writer, array.length, lambda inner, index: [Node(f"{array.text}[{index.text}] = {value};")]) if array else None


@kind(3)
def walk(writer):
    """A pointer that walks along an array."""
    draw = writer.draw
    array = draw_array(writer, wants=lambda one: one.is_nvm)
    if not array or not writer.can_repeat(array.length) or writer.depth >= DEPTH_MAX:
        return None
    p, end = writer.name("p"), writer.name("end")
    pointer = f"NVL {array.scalar.name} *"
    inner = writer.inner(array.length, is_loop=True)
    inner.scope.values.append(Value(f"(*{p})", array.scalar))
    count = draw.choice([str(array.length), bounded(draw, writer.scope, array.length + 1)])
    way = draw.weighted([(4, "up"), (2, "down"), (1, "until")])
    if way == "up":
        return Node("{", f"    {pointer}{p} = {array.text};", f"    {pointer}{end} = {p} + ({count});",
                    f"    for (; {p} {draw.choice(['!=', '<'])} {end}; {p}++) {{",
                    [Node(assign(inner, Value(f"(*{p})", array.scalar)))] + (inner.block(1) if draw.chance(0.3) else []),
                    "    }", "}")
    if way == "down":
        return Node("{", f"    {pointer}{p} = {array.text} + ({count});", f"    while ({p} > {array.text}) {{", f"        {p}--;",
                    [Node(assign(inner, Value(f"(*{p})", array.scalar)))], "    }", "}")
    return Node("{", f"    {pointer}{p} = {array.text};", f"    {pointer}{end} = {p} + {array.length};",
                f"    while ({p} < {end} && ({condition(draw, inner.scope)}))",
                f"        *{p}++ = ({array.scalar.name}){draw.randrange(100)};", "}")


@kind(2)
def wrapped(writer):
    """Indices that begin anew in a narrow type, or jump about."""
    draw = writer.draw
    array = draw_array(writer, wants=lambda one: one.length >= 4)
    if not array or not writer.can_repeat(20):
        return None
    writer.pay(20)
    mask = (1 << (array.length.bit_length() - 1)) - 1
    i, at = writer.name("i"), writer.name("x")
    scalar = draw.choice([U8, U16, U32])
    step = draw.choice([1, 1, 3, 5])
    inner = writer.inner(20)
    inner.scope.indices.append(Index(i, 20))
    text = assign(inner, element(array, f"{at} & {mask}"))
    return Node("{", f"    {scalar.name} {at} = ({scalar.name}){draw.choice([0, 250, 65530, 4294967290])};",
                f"    for (int {i} = 0; {i} < {draw.randrange(1, 21)}; {i}++, {at} += {step})", f"        {text}", "}")


@kind(3)
def gather(writer):
    """A number in an object gets the sum of an array: it wants to be in a register meanwhile."""
    draw = writer.draw
    array = draw_array(writer, False, lambda one: not one.scalar.is_real)
    targets = [value for value in writer.scope.numbers(draw, must_own=True)
               if value.scalar in (I32, I64, U32, U64, I16, U16) and not value.is_bits]
    if not array or not targets:
        return None
    target = draw.choice(targets)

    def body(inner, index):
        text = updated(inner, target.text, target.scalar, f"{array.text}[{index.text}]")
        out = leave(inner) if draw.chance(0.3) else None
        return [Node(text)] + ([Node(f"if ({condition(draw, inner.scope)})", f"    {out}")] if out else [])

    return loop(writer, array.length, body)


@kind(2)
def members(writer):
    """Members of structs in a row."""
    draw = writer.draw
    rows = [row for row in writer.scope.rows if row.is_owned]
    if not rows:
        return None
    row = draw.choice(rows)

    def body(inner, index):
        inner.scope.objects = [row.at(index.text)]
        inner.scope.rows = []
        return inner.block(2)

    return loop(writer, row.length, body)


OVER_ARRAYS = [over_array, over_array, along, between, fill, walk, wrapped, gather]
