"""Functions: their bodies and what they give, and calls of them, from inside and outside of transactions."""

from dataclasses import dataclass

from .body import DEPTH_MAX, Writer, kind
from .data import F64, I8, I32, U32, U64, Scalar, Struct
from .expressions import of_type
from .loops import OVER_ARRAYS
from .parameters import ObjectParameter, RestrictParameter, StructParameter, draw_kernel, draw_parameters
from .pointers import target
from .scope import Scope, Value, named, through
from .statements import table_of_labels
from .tree import Node

FUNCTION_COST_MAX = 1500


@dataclass(eq=False)
class Function:
    name: str
    parameters: list
    # None, a Scalar, a Struct, or a pointer to one: ("pointer", struct).
    result: object
    cost: int = 20
    specifiers: str = "static "
    is_called_by_pointer: bool = False
    is_of_chain: bool = False
    node: Node = None

    def prototype(self):
        parameters = ", ".join(one.declare() for one in self.parameters) or "void"
        return f"{self.specifiers}{result_text(self.result)}{self.name}({parameters})"

    def with_body(self, nodes):
        # Nobody knows what such a pointer leads to.
        pointer = [f"static __typeof__({self.name}) *volatile by_pointer_{self.name} = {self.name};"]
        return Node(self.prototype() + " {", nodes, "}", *(pointer if self.is_called_by_pointer else []), "", keep=True)

    def arguments(self, writer):
        """The text of the arguments, and lines that make those that are not there. None, None if these cannot be made."""
        taken, texts, lines = set(), [], []
        for one in self.parameters:
            text = one.argument(writer, taken) if isinstance(one, RestrictParameter) else one.argument(writer)
            if text is None:
                text = writer.name("n")
                made = one.made(writer, text)
                if made is None:
                    return None, None
                lines += made
            texts.append(text)
        return ", ".join(texts), lines


def result_text(result):
    if result is None:
        return "void "
    if isinstance(result, Scalar):
        return f"{result.name} "
    if isinstance(result, Struct):
        return f"struct {result.name} "
    return f"NVL struct {result[1].name} *"


@kind(20)
def call(writer):
    """A call by itself: C leaves open in which order it and the rest of an expression are evaluated."""
    draw = writer.draw
    found = [one for one in writer.functions if writer.can_pay(one.cost)]
    if not found or writer.depth >= DEPTH_MAX:
        return None
    # Those of lists and trees are many.
    own = [one for one in found if not one.is_of_chain]
    function = draw.choice(own if own and draw.chance(0.7) else found)
    arguments, lines = function.arguments(writer)
    if arguments is None or lines and not writer.can_pay(function.cost + 20 * len(lines)):
        return None
    writer.pay(function.cost + 20 * len(lines))
    node = make_call(writer, function, arguments)
    return Node("{", *("    " + line for line in lines), [node], "}") if lines else node


def make_call(writer, function, arguments):
    draw = writer.draw
    name = f"by_pointer_{function.name}" if function.is_called_by_pointer and draw.chance(0.5) else function.name
    text, result = f"{name}({arguments})", function.result
    inner = writer.inner()
    if result is None:
        return Node(f"{text};", calls=[function])
    # The result is used at once.
    local = writer.name("r")
    if isinstance(result, Scalar):
        inner.scope.values.append(Value(local, result))
        return Node("{", f"    {result.name} {local} = {text};", [inner.statement()], "}", calls=[function])
    if isinstance(result, Struct):
        # Whether the call or a place's index comes first is open, too.
        owned = [one for one in writer.scope.all_objects(draw, must_own=True) if one.struct is result and "%" not in one.lvalue]
        if owned and draw.chance(0.5):
            return Node(f"{draw.choice(owned).lvalue} = {text};", calls=[function])
        inner.scope.objects.append(named(local, result, is_nvm=False))
        return Node("{", f"    struct {result.name} {local} = {text};", inner.block(2), "}", calls=[function])
    inner.scope.objects.append(through(local, result[1]))
    return Node("{", f"    NVL struct {result[1].name} *{local} = {text};", f"    if ({local}) {{", inner.block(2), "    }", "}",
                calls=[function])


def draw_result(draw, structs, parameters):
    what = draw.weighted([(4, None), (4, "number"), (1, "struct"), (2, "pointer")])
    if what == "number":
        return draw.choice([I32, U32, U64, F64, I8])
    if what == "struct":
        # What it returns has to be there.
        passed = [one.struct for one in parameters if isinstance(one, (ObjectParameter, StructParameter))
                  and not one.struct.is_nvm_only and (not isinstance(one, ObjectParameter) or one.is_owned)]
        return draw.choice(passed) if passed else None
    if what == "pointer":
        owned = [one.struct for one in parameters if isinstance(one, ObjectParameter) and one.is_owned]
        return ("pointer", draw.choice(owned)) if owned else None
    return None


def returned(writer, result):
    """The text of a return statement."""
    draw = writer.draw
    if result is None:
        return "return;"
    if isinstance(result, Scalar):
        return f"return {of_type(draw, writer.scope, result)};"
    if isinstance(result, Struct):
        found = [one.lvalue for one in writer.scope.all_objects(draw) if one.struct is result
                 and (one.is_owned or not result.has_pointers)]
        return f"return {draw.choice(found)};"
    links = [f"{one.access}{member.name}" for one, member in writer.scope.links(draw, must_own=True)
             if member.struct is result[1] and one.is_nvm]
    if links and draw.chance(0.5):
        return f"return {draw.choice(links)};"
    return f"return {target(writer, result[1])};"


SPECIFIERS = [(4, "static "), (4, "__attribute__((noinline)) static "), (2, "__attribute__((noinline)) "), (1, ""),
              (1, "__attribute__((always_inline)) static inline "), (1, "__attribute__((weak)) ")]


def make_function(draw, name, structs, chains, functions, statements):
    is_kernel = draw.chance(0.25)
    parameters = draw_kernel(draw) if is_kernel else draw_parameters(draw, structs, chains)
    function = Function(name, parameters, draw_result(draw, structs, parameters), specifiers=draw.weighted(SPECIFIERS),
                        is_called_by_pointer=draw.chance(0.4))
    scope = Scope()
    for one in parameters:
        one.bind(scope)
    writer = Writer(draw, scope, functions, FUNCTION_COST_MAX)
    writer.spent.may_take_labels = "inline" not in function.specifiers and draw.chance(0.15)
    has_leave = draw.chance(0.4)
    outermost = writer.scope
    if has_leave:
        # What it returns is in scope everywhere.
        def leave():
            inner = Writer(draw, outermost, [])
            return returned(inner, function.result)

        writer.leave = leave
    body = []
    for _ in range(draw.randrange(2, statements + 1)):
        loop = draw.choice(OVER_ARRAYS)(writer) if is_kernel and draw.chance(0.7) else None
        body.append(loop or writer.statement())
    if writer.spent.may_take_labels:
        body.append(table_of_labels(writer))
    body.append(Node(returned(Writer(draw, outermost, []), function.result), keep=True))
    function.node = function.with_body(body)
    function.cost = max(writer.spent.cost, 1)
    return function
