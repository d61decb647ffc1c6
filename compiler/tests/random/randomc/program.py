"""A whole program.

Its data hang on a root, with the number of steps that are done. A step has an *area* of its own in them. First it sets that anew,
reading what earlier steps have left, and then it changes everything, its number included. The first part gives the same when it
is done again, so that it needs no transaction; the second one is a transaction where there are some. What the first part has
stored has to be durable when the second one is. So a program that is killed and started again prints what it would have printed.
"""

from dataclasses import dataclass

from . import counts, loops, observed, pointers, statements, transactions  # noqa: F401 (their statements are known from here on)
from .body import Writer
from .chains import begin, draw_chains, make_functions
from .data import draw_structs
from .draw import Draw
from .functions import make_function
from .places import ArrayPlace, HeadPlace, draw_places
from .scope import Scope
from .sums import fill, sum_prototype, total
from .transactions import segment
from .tree import Node, lines_of, number, render


MAIN = """
    static void (*const steps[])(NVL struct world *) = {ALL_STEPS};

    int main(int argc, char **argv) {
        OPEN(argc > 1 ? argv[1] : "heap");
        NVL struct world *w = ROOT(struct world);
        if (!w)
            STEP
            {
                w = ALLOC(1, struct world);
                set_up(w);
                SET_ROOT(w);
            }
        while (w->step < STEPS) {
            COLLECT();
            noise();
            steps[w->step](w);
        }
        noise();
        for (int i = 0; i < STEPS; i++) {
            printf("step %d: %016llx\\n", i, (unsigned long long)w->sums[i]);
            printf("area %d: %016llx\\n", i, (unsigned long long)sum_area(0, AREA));
        }
        printf("all: %016llx\\n", (unsigned long long)sum_world(w, FIRST));
        check_counts(w);
        CLOSE();
        return 0;
    }
"""


@dataclass(frozen=True)
class Size:
    """How large programs become."""

    structs: int = 5
    functions: int = 7
    # In a function or a part of a step, at most.
    statements: int = 6
    steps: int = 6


class Program:
    def __init__(self, seed, size=Size()):
        self.seed = seed
        self.size = size
        self.draw = draw = Draw(seed)
        self.structs = draw_structs(draw, size.structs)
        self.chains = draw_chains(draw, self.structs)
        for chain in self.chains:
            make_functions(draw, chain)
        self.world = draw_places(draw, self.structs, self.chains, size.structs + 2)
        self.area = draw_places(draw, self.structs, self.chains, size.structs)
        self.has_embedded_areas = draw.chance(0.5)
        self.functions = [function for chain in self.chains for function in chain.functions]
        everything = self.structs + [chain.struct for chain in self.chains]
        for place in range(size.functions):
            self.functions.append(
                make_function(draw, f"f{place}", everything, self.chains, list(self.functions), size.statements))
        self.set_up = self.make_reset() + self.make_set_up()
        self.steps = [self.make_step(step) for step in range(size.steps)]
        self.count = number([function.node for function in self.functions] + self.set_up + self.steps)

    def area_of(self, step):
        """A pointer to the area of a step."""
        return f"&w->kept[{step}]" if self.has_embedded_areas else f"w->kept[{step}]"

    def make_set_up(self):
        lines = []
        for place in self.world:
            lines += place.set_up("w->", self.draw, "1")
        if not self.has_embedded_areas:
            lines += [f"for (int i = 0; i < {self.size.steps}; i++)", "    w->kept[i] = ALLOC(1, struct area);"]
        scope = Scope()
        for place in self.world:
            place.bind(scope, "w->", True)
        writer = Writer(self.draw, scope, [])
        # Not many: it is the steps that are tested with kills.
        body = self.first_pointers(writer) + writer.block(3)
        return [Node("static void set_up(NVL struct world *w) {", [Node(line, keep=True) for line in lines] + body, "}", "",
                     keep=True)]

    def some_of(self, places, count):
        return self.draw.sample(places, min(count, len(places)))

    def make_scope(self, step, owns_all):
        scope = Scope()
        # Not all of it: statements have more to do with each other so.
        for place in self.some_of(self.area, 5):
            place.bind(scope, "a->", True)
        for place in self.some_of(self.world, 6):
            place.bind(scope, "w->", owns_all)
        if step and self.draw.chance(0.6):
            earlier = self.draw.randrange(step)
            at = f"w->kept[{earlier}]" + ("." if self.has_embedded_areas else "->")
            for place in self.some_of(self.area, 2):
                if not isinstance(place, HeadPlace):
                    place.bind(scope, at, owns_all)
        return scope

    def make_step(self, step):
        parts, calls, names = [], [], 0
        for name, owns_all in (("prepare", False), ("change", True)):
            is_function = self.draw.chance(0.6)
            writer = Writer(self.draw, self.make_scope(step, owns_all), self.functions)
            # Both may be in one function.
            writer.spent.names = names
            writer.is_step = True
            writer.may_clobber = not owns_all
            if is_function:
                writer.leave = lambda: "return;"
            body = [] if owns_all else [Node(f"reset(a, {self.draw.randrange(1000)});", keep=True)]
            body += [writer.statement() for _ in range(self.size.statements)]
            if owns_all:
                body += [node for node in [self.exchange()] if node]
            names = writer.spent.names
            if is_function:
                inline = self.draw.choice(["", "__attribute__((noinline)) "])
                parts.append(Node(f"{inline}static void {name}_{step}(NVL struct world *w, NVL struct area *a) {{", body, "}", "",
                                  keep=True))
                calls.append([Node(f"{name}_{step}(w, a);", keep=True)])
            else:
                calls.append([Node("{", body, "}", keep=True)])
        last = [Node(f"w->sums[{step}] = sum_world(w, a);", keep=True), Node(f"w->step = {step + 1};", keep=True)]
        transaction = Node(f"ATOMIC({self.clause(step)})", "{", calls[1] + last, "}", keep=True)
        parts.append(Node(f"static void step_{step}(NVL struct world *w) {{",
                          f"    NVL struct area *a = {self.area_of(step)};", "    STEP", "    {",
                          calls[0] + [transaction], "    }", "}", "", keep=True))
        return Node(parts, keep=True)

    def clause(self, step):
        if self.draw.chance(0.7):
            return ""
        writer = Writer(self.draw, self.make_scope(step, True), [])
        text = segment(writer, must_own=True)
        return f"backup({text})" if text else ""

    def make_reset(self):
        """An area gets its first values: those of a step that was killed are gone."""
        lines = ["memset(a, 0, sizeof *a);"]
        scope = Scope()
        for place in self.area:
            lines += place.set_up("a->", self.draw, "x")
            place.bind(scope, "a->", True)
        pointers_of_area = self.first_pointers(Writer(self.draw, scope, []))
        return [Node("static void reset(NVL struct area *a, uint64_t x) {",
                     [Node(line, keep=True) for line in lines + ["(void)x;"]] + pointers_of_area, "}", "", keep=True)]

    def first_pointers(self, writer):
        """Most pointers of objects lead somewhere."""
        found = [pointers.pointed(writer, one, member) for one, member in writer.scope.links(self.draw, must_own=True)]
        found += [pointers.viewed(writer, one, member) for one, member in writer.scope.views(self.draw, must_own=True)]
        return [node for node in found if self.draw.chance(0.8)]

    def exchange(self):
        """Pointers in the root change places."""
        arrays = [place for place in self.world if isinstance(place, ArrayPlace) and place.name in ("v0", "v1")]
        heads = [place for place in self.world if isinstance(place, HeadPlace)]
        one, other = self.draw.choice([arrays, [head for head in heads if head.chain is heads[0].chain]])[:2]
        type_name = one.declare().rsplit("*", 1)[0]
        return Node("{", f"    {type_name}*s = w->{one.name};", f"    w->{one.name} = w->{other.name};",
                    f"    w->{other.name} = s;", "}")

    def text(self, without=frozenset()):
        """The program, without the statements of these numbers and without functions that nobody calls then."""
        tops = self.set_up + self.steps
        ends, called = render(tops, without)
        needed = set()
        while called:
            function = called.pop()
            if function not in needed:
                needed.add(function)
                called += render([function.node], without)[1]
        # Those of lists and trees call themselves, and each other.
        needed |= {function for chain in self.chains for function in chain.functions}
        bodies = [function.node for function in self.functions if function in needed]
        everything = self.structs + [chain.struct for chain in self.chains]
        lines = [f"// A random program: seed {self.seed}.", '#include "bindings.h"', "",
                 f"enum {{ STEPS = {self.size.steps} }};", ""]
        lines += [f"struct {struct.name};" for struct in everything]
        for struct in everything:
            lines += struct.declare()
        lines += ["struct area {", *(f"    {place.declare()}" for place in self.area), "};"]
        lines += ["struct world {", "    uint32_t step;", "    uint64_t sums[STEPS];",
                  f"    {'struct area ' if self.has_embedded_areas else 'NVL struct area *'}kept[STEPS];",
                  *(f"    {place.declare()}" for place in self.world), "};", ""]
        lines += [sum_prototype(struct) + ";" for struct in everything]
        lines += render([fill(struct) for struct in everything] + [total(struct) for struct in everything])[0]
        for chain in self.chains:
            lines += begin(chain)
        lines += render(bodies)[0]
        lines += self.totals() + ends + self.noise() + self.counts() + self.main()
        return "\n".join(lines) + "\n"

    def totals(self):
        lines = ["static uint64_t sum_area(uint64_t h, NVL const struct area *a) {"]
        for place in self.area:
            lines += ["    " + line for line in place.total("a->")]
        lines += ["    return h;", "}", "", "static uint64_t sum_world(NVL const struct world *w, NVL const struct area *a) {",
                  "    uint64_t h = sum_area(1, a);"]
        for place in self.world:
            lines += ["    " + line for line in place.total("w->")]
        return lines + ["    return h;", "}", ""]

    def noise(self):
        """Objects that nothing leads to, where there was room: whatever was freed too early has other values then."""
        lines = ["static void noise(void) {", "    for (int i = 1; i <= 12; i++) {"]
        for struct in self.structs + [chain.struct for chain in self.chains]:
            lines.append(f"        fill_{struct.name}(ALLOC(1 + i % 3, struct {struct.name}), (uint64_t)i);")
        return lines + ["        NVL uint64_t *v = ALLOC(i, uint64_t);", "        for (int j = 0; j < i; j++)",
                        "            v[j] = 0xa5a5a5a5a5a5a5a5u;", "    }", "}", ""]

    def counts(self):
        """Nobody counts pointers in ordinary memory, or where durumcc leaves that out."""
        return ["#if defined PLAIN || defined UNCOUNTED", "static void check_counts(NVL struct world *w) { (void)w; }",
                "#else",
                *counts.functions(self.structs, self.chains, self.world, self.area, self.area_of("step")), "#endif", ""]

    def main(self):
        steps = ", ".join(f"step_{step}" for step in range(self.size.steps))
        area = "&w->kept[i]" if self.has_embedded_areas else "w->kept[i]"
        return lines_of(MAIN, all_steps=steps, area=area, first=self.area_of(0))
