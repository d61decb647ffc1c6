"""Functions that give objects their first values, and that sum all that an object leads to."""

from .data import Field, Link, Part, Parts, Row, Table, View
from .tree import Node


def value_of(scalar, number):
    """A number of the type from 64 bits."""
    return f"({scalar.name})real_of((int64_t){number} >> 40)" if scalar.is_real else f"({scalar.name}){number}"


def fill(struct):
    """fill_NAME(p, x): all numbers of *p are made of x."""
    lines = ["x = mix(x, 1);"]
    for member in struct.members:
        text = f"p->{member.name}"
        if isinstance(member, Field):
            lines += ["x = mix(x, 2);", f"{text} = {value_of(member.scalar, 'x')};"]
        elif isinstance(member, Row):
            lines += [f"for (int i = 0; i < {member.length}; i++) {{", "    x = mix(x, 3);",
                      f"    {text}[i] = {value_of(member.scalar, 'x')};", "}"]
        elif isinstance(member, Table):
            lines += [f"for (int i = 0; i < {member.rows}; i++)", f"    for (int j = 0; j < {member.length}; j++) {{",
                      "        x = mix(x, 4);", f"        {text}[i][j] = {value_of(member.scalar, 'x')};", "    }"]
        elif isinstance(member, Part):
            lines.append(f"fill_{member.struct.name}(&{text}, x + 5);")
        elif isinstance(member, Parts):
            lines += [f"for (int i = 0; i < {member.length}; i++)",
                      f"    fill_{member.struct.name}(&{text}[i], x + 6 + (uint64_t)i);"]
    return Node(f"static void fill_{struct.name}(NVL struct {struct.name} *p, uint64_t x) {{",
                [Node(line, keep=True) for line in lines], "}", "", keep=True)


def summed(scalar, text):
    return f"h = {'mix_real' if scalar.is_real else 'mix'}(h, {'' if scalar.is_real else '(uint64_t)'}{text});"


def sum_prototype(struct):
    return f"static uint64_t sum_{struct.name}(uint64_t h, NVL const struct {struct.name} *p, int depth)"


def sum_members(struct):
    lines = []
    for member in struct.members:
        text = f"p->{member.name}"
        if isinstance(member, Field):
            lines.append(summed(member.scalar, text))
        elif isinstance(member, Row):
            lines += [f"for (int i = 0; i < {member.length}; i++)", "    " + summed(member.scalar, f"{text}[i]")]
        elif isinstance(member, Table):
            lines += [f"for (int i = 0; i < {member.rows}; i++)", f"    for (int j = 0; j < {member.length}; j++)",
                      "        " + summed(member.scalar, f"{text}[i][j]")]
        elif isinstance(member, Part):
            lines.append(f"h = sum_{member.struct.name}(h, &{text}, depth);")
        elif isinstance(member, Parts):
            lines += [f"for (int i = 0; i < {member.length}; i++)", f"    h = sum_{member.struct.name}(h, &{text}[i], depth);"]
        elif isinstance(member, Link):
            lines.append(f"h = {text} && depth > 0 ? sum_{member.struct.name}(h, {text}, depth - 1) : mix(h, {text} != NULL);")
        elif isinstance(member, View):
            lines += [f"h = mix(h, {text} != NULL);", f"for (int i = 0; {text} && i < {member.length}; i++)",
                      "    " + summed(member.scalar, f"{text}[i]")]
    return lines


def total(struct):
    """sum_NAME(h, p, depth): the checksum h goes on with *p, and with what its pointers lead to, `depth` of them one behind
    the other."""
    lines = sum_members(struct)
    return Node(sum_prototype(struct) + " {", [Node(line, keep=True) for line in lines + ["(void)depth;", "return h;"]], "}", "",
                keep=True)
