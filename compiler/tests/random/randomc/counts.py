"""Functions that tell inputs/counts.c of all strong pointers that a program can reach, and of allocations they may lead to."""

from .data import Link, Part, Parts, View
from .places import ArrayPlace, HeadPlace, ObjectPlace

PROTOTYPES = ["int counts_object(NVL const void *address, int type);", "void counts_pointer(NVL const void *target);",
              "void counts_allocation(NVL const void *start, size_t size);", "void counts_check(void);"]


def prototype(struct):
    return f"static void visit_{struct.name}(NVL struct {struct.name} *p)"


def visited(struct, text):
    """What is behind a pointer to a struct."""
    return [f"if ({text}) {{", f"    counts_pointer({text});", f"    visit_{struct.name}({text});", "}"]


def of_struct(struct, number, links):
    lines = [prototype(struct) + " {", f"    if (!counts_object(p, {number}))", "        return;"]
    if links:
        # What lists are made of is allocated one by one.
        lines.append("    counts_allocation(p, sizeof *p);")
    for link in links:
        lines += ["    " + line for line in visited(struct, f"p->{link}")]
    for member in struct.members:
        text = f"p->{member.name}"
        if isinstance(member, Link) and not member.is_weak:
            lines += ["    " + line for line in visited(member.struct, text)]
        elif isinstance(member, View):
            lines += [f"    if ({text})", f"        counts_pointer({text});"]
        elif isinstance(member, Part):
            lines.append(f"    visit_{member.struct.name}(&{text});")
        elif isinstance(member, Parts):
            lines += [f"    for (int i = 0; i < {member.length}; i++)", f"        visit_{member.struct.name}(&{text}[i]);"]
    return lines + ["}"]


def of_place(place, at):
    text = at + place.name
    if isinstance(place, HeadPlace):
        return visited(place.chain.struct, text)
    lines = []
    if isinstance(place, (ArrayPlace, ObjectPlace)) and place.is_pointer:
        count = place.rows or place.length if isinstance(place, ArrayPlace) else place.length or 1
        lines += [f"counts_pointer({text});", f"counts_allocation({text}, {count} * sizeof *{text});"]
    if isinstance(place, ObjectPlace) and place.length:
        lines += [f"for (int i = 0; i < {place.length}; i++)", f"    visit_{place.struct.name}(&{text}[i]);"]
    elif isinstance(place, ObjectPlace):
        lines.append(f"visit_{place.struct.name}({'' if place.is_pointer else '&'}{text});")
    return lines


def functions(structs, chains, world, area, area_pointer):
    """The lines of check_counts(w), and of what it calls."""
    everything = structs + [chain.struct for chain in chains]
    links = {chain.struct: ["left", "right"] if chain.is_tree else ["next"] for chain in chains}
    lines = [*PROTOTYPES, *(prototype(struct) + ";" for struct in everything)]
    for number, struct in enumerate(everything):
        lines += of_struct(struct, number, links.get(struct, []))
    lines += ["static void check_counts(NVL struct world *w) {", "    counts_allocation(w, sizeof *w);", "    counts_pointer(w);"]
    for place in world:
        lines += ["    " + line for line in of_place(place, "w->")]
    lines += ["    for (int step = 0; step < w->step; step++) {", f"        NVL struct area *a = {area_pointer};"]
    if not area_pointer.startswith("&"):
        lines += ["        counts_pointer(a);", "        counts_allocation(a, sizeof *a);"]
    for place in area:
        lines += ["        " + line for line in of_place(place, "a->")]
    return lines + ["    }", "    counts_check();", "}"]
