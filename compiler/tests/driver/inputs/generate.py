#!/usr/bin/env python3
"""Writes a C program of about LINES lines, drawn from SEED: structs, loops, switches, calls, pointers."""

import random
import sys

seed, lines_wanted = int(sys.argv[1]), int(sys.argv[2])
draw = random.Random(seed)
types = ["int", "unsigned", "long", "short", "unsigned char", "double", "float"]
out = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", ""]
structs = []
functions = []


def expression(names, depth=0):
    if depth > 3 or draw.random() < 0.3:
        return draw.choice(names + [str(draw.randrange(1, 100))])
    operator = draw.choice(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "==", "&&", "?"])
    left, right = expression(names, depth + 1), expression(names, depth + 1)
    if operator == "?":
        return f"({left} ? {right} : {expression(names, depth + 1)})"
    if operator in ("/", "%"):
        return f"({left} {operator} (({right}) | 1))"
    if operator in ("<<", ">>"):
        return f"({left} {operator} (({right}) & 7))"
    return f"({left} {operator} {right})"


def statements(names, depth, indent):
    space = "    " * indent
    for _ in range(draw.randrange(2, 6)):
        kind = draw.choice(["set", "if", "for", "switch", "call", "copy"])
        if kind == "set" or depth > 2:
            yield f"{space}{draw.choice(names)} = {expression(names)};"
        elif kind == "if":
            yield f"{space}if ({expression(names)}) {{"
            yield from statements(names, depth + 1, indent + 1)
            yield f"{space}}} else {{"
            yield from statements(names, depth + 1, indent + 1)
            yield f"{space}}}"
        elif kind == "for":
            yield f"{space}for (long i{depth} = 0; i{depth} < {draw.randrange(2, 40)}; i{depth}++) {{"
            yield from statements(names, depth + 1, indent + 1)
            yield f"{space}}}"
        elif kind == "switch":
            yield f"{space}switch ({expression(names)} & 3) {{"
            for case in range(3):
                yield f"{space}case {case}:"
                yield from statements(names, depth + 1, indent + 1)
                yield f"{space}    break;"
            yield f"{space}}}"
        elif kind == "call" and functions:
            yield f"{space}{draw.choice(names)} = {draw.choice(functions)}({draw.choice(names)}, (int){draw.choice(names)});"
        elif kind == "copy" and structs:
            name, members = draw.choice(structs)
            yield f"{space}{{ struct {name} s = {{0}}, t; s.{draw.choice(members)} = {draw.choice(names)}; memcpy(&t, &s, sizeof t); {draw.choice(names)} += t.{draw.choice(members)}; }}"


while len(out) < lines_wanted:
    number = len(functions)
    if draw.random() < 0.3:
        members = [f"m{i}" for i in range(draw.randrange(2, 6))]
        out.append(f"struct s{len(structs)} {{")
        out += [f"    {draw.choice(types)} {member};" for member in members]
        out.append("};")
        structs.append((f"s{len(structs)}", members))
    out.append(f"{draw.choice(['static ', ''])}long f{number}(long a, int b) {{")
    out.append("    long x = a + b, y = a - b, z = 1;")
    out += statements(["x", "y", "z"], 0, 1)
    out.append("    return x + y + z;")
    out.append("}")
    functions.append(f"f{number}")
out.append("int main(int argc, char **argv) {")
out.append("    (void)argv;")
out.append("    long sum = 0;")
out += [f"    sum += {name}(argc, {i});" for i, name in enumerate(functions)]
out.append('    printf("%ld\\n", sum);')
out.append("    return 0;")
out.append("}")
print("\n".join(out))
