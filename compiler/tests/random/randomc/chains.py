"""Lists and trees: what they are made of, and the functions that link and unlink that."""

from dataclasses import dataclass, field

from .body import DEPTH_MAX, kind
from .data import I32, U64, Field, Struct, draw_member
from .functions import Function
from .parameters import HeadParameter, NumberParameter
from .scope import through
from .tree import Node

ITEMS_MAX = 24


@dataclass(eq=False)
class Chain:
    struct: Struct
    is_tree: bool
    # A list whose items know the one before them, weakly.
    is_double: bool
    functions: list = field(default_factory=list)


def draw_chains(draw, structs):
    """A list and a tree. Pointers of structs may lead to their items."""
    chains = []
    for name, is_tree in (("item", False), ("leaf", True)):
        struct = Struct(name)
        is_double = not is_tree and draw.chance(0.5)
        links = ["left", "right"] if is_tree else ["next"]
        struct.chain = [f"NVL struct {name} *{link};" for link in links]
        if is_double:
            struct.chain.append(f"NVL struct {name} *WEAK previous;")
        inner = [one for one in structs if len(one.members) < 4]
        struct.members = [Field("key", I32), Field("value", U64)]
        struct.members += [draw_member(draw, chr(ord("a") + at), structs, inner) for at in range(draw.randrange(4))]
        chains.append(Chain(struct, is_tree, is_double))
    return chains


def unlinked(chain, link="link"):
    """Takes the item `found` out of a list, at the pointer that leads to it."""
    lines = []
    if chain.is_double:
        lines += ["if (found->next)", "    found->next->previous = found->previous;", "found->previous = NULL;"]
    return lines + [f"*{link} = found->next;", "found->next = NULL;"]


def made(chain, head):
    name = chain.struct.name
    return [f"if ({name}_count({head}) >= {ITEMS_MAX})", "    return;", f"NVL struct {name} *made = ALLOC(1, struct {name});"]


def list_functions(chain):
    """Pairs of a function's end of a name and its parameters, and its lines."""
    name = chain.struct.name
    filled = [f"fill_{name}(made, x);", "made->key = key;"]
    back = ["if (made->next)", "    made->next->previous = made;"] if chain.is_double else []
    yield "push", "HKX", [*made(chain, "*head"), *filled, "made->next = *head;", *back, "*head = made;"]
    yield "append", "HKX", [
        f"NVL struct {name} *NVL *link = head;", *([f"NVL struct {name} *last = NULL;"] if chain.is_double else []),
        *made(chain, "*head"), "while (*link) {", *(["    last = *link;"] if chain.is_double else []),
        "    link = &(*link)->next;", "}", "*link = made;", *(["made->previous = last;"] if chain.is_double else []), *filled]
    yield "insert", "HKX", [
        f"NVL struct {name} *NVL *link = head;", *([f"NVL struct {name} *last = NULL;"] if chain.is_double else []),
        *made(chain, "*head"), *filled, "while (*link && (*link)->key < key) {",
        *(["    last = *link;"] if chain.is_double else []), "    link = &(*link)->next;", "}", "made->next = *link;",
        *(["made->previous = last;"] if chain.is_double else []), *back, "*link = made;"]
    yield "drop", "HK", [
        f"NVL struct {name} *NVL *link = head;", "while (*link && (*link)->key % 8 != key % 8)", "    link = &(*link)->next;",
        f"NVL struct {name} *found = *link;", "if (!found)", "    return;", *unlinked(chain)]
    yield "thin", "HK", [
        f"NVL struct {name} *NVL *link = head;", "for (uint32_t n = (uint32_t)key; *link; n++) {", "    if (n % 3) {",
        "        link = &(*link)->next;", "        continue;", "    }", f"    NVL struct {name} *found = *link;",
        *("    " + line for line in unlinked(chain)), "}"]
    yield "reverse", "H", [
        f"NVL struct {name} *done = NULL;", f"for (NVL struct {name} *one = *head, *next; one; one = next) {{", "    next = one->next;",
        "    one->next = done;", *(["    one->previous = NULL;", "    if (done)", "        done->previous = one;"] if chain.is_double else []),
        "    done = one;", "}", "*head = done;"]
    yield "move", "HG", [
        f"NVL struct {name} *found = *head;", "if (!found)", "    return;", *unlinked(chain, "head"), "found->next = *to;",
        *(["if (*to)", "    (*to)->previous = found;"] if chain.is_double else []), "*to = found;"]


def tree_functions(chain):
    name = chain.struct.name
    yield "insert", "HKX", [
        f"NVL struct {name} *NVL *link = head;", "for (int depth = 0; *link && (*link)->key != key && depth < 20; depth++)",
        "    link = key < (*link)->key ? &(*link)->left : &(*link)->right;", "if (*link) {", f"    fill_{name}(*link, x);",
        "    (*link)->key = key;", "    return;", "}", *made(chain, "*head"), f"fill_{name}(made, x);", "made->key = key;",
        "*link = made;"]
    yield "drop_first", "H", [
        f"NVL struct {name} *NVL *link = head;", "if (!*link)", "    return;", "while ((*link)->left)", "    link = &(*link)->left;",
        f"NVL struct {name} *found = *link;", "*link = found->right;", "found->right = NULL;"]
    yield "rotate", "H", [
        f"NVL struct {name} *top = *head;", "if (!top || !top->left)", "    return;", "*head = top->left;",
        "top->left = (*head)->right;", "(*head)->right = top;"]
    yield "mirror", "H", [
        f"NVL struct {name} *top = *head;", "if (!top)", "    return;", f"NVL struct {name} *left = top->left;",
        "top->left = top->right;", "top->right = left;", f"{name}_mirror(&top->left);", f"{name}_mirror(&top->right);"]
    yield "add", "HX", [
        "if (!*head)", "    return;", "(*head)->value += x;", f"{name}_add(&(*head)->left, x * 3);",
        f"{name}_add(&(*head)->right, x + 1);"]


def count(chain):
    """NAME_count(first): how many there are."""
    name = chain.struct.name
    if chain.is_tree:
        lines = [f"return first ? 1 + {name}_count(first->left) + {name}_count(first->right) : 0;"]
    else:
        lines = ["int n = 0;", "for (; first; first = first->next)", "    n++;", "return n;"]
    return Node(f"static int {name}_count(NVL const struct {name} *first) {{", [Node(line, keep=True) for line in lines], "}", "",
                keep=True)


def total(chain):
    """sum_all_NAME(h, first): the checksum goes on with all items, in their order, and with the way back."""
    name = chain.struct.name
    if chain.is_tree:
        lines = ["if (!first)", "    return mix(h, 1);", f"h = sum_all_{name}(h, first->left);", f"h = sum_{name}(h, first, 1);",
                 f"return sum_all_{name}(h, first->right);"]
    else:
        back = [f"NVL const struct {name} *last = NULL;"] if chain.is_double else []
        lines = [*back, "for (; first; first = first->next) {", f"    h = sum_{name}(h, first, 1);",
                 *(["    h = mix(h, first->previous == last);", "    last = first;"] if chain.is_double else []), "}",
                 "return mix(h, 2);"]
    return Node(f"static uint64_t sum_all_{name}(uint64_t h, NVL const struct {name} *first) {{",
                [Node(line, keep=True) for line in lines], "}", "", keep=True)


def make_functions(draw, chain):
    letters = {"H": HeadParameter("head", chain), "G": HeadParameter("to", chain), "K": NumberParameter("key", I32),
               "X": NumberParameter("x", U64)}
    chosen = list(tree_functions(chain) if chain.is_tree else list_functions(chain))
    for end, parameters, lines in chosen:
        specifiers = draw.choice(["static ", "__attribute__((noinline)) static ", "__attribute__((noinline)) "])
        function = Function(f"{chain.struct.name}_{end}", [letters[letter] for letter in parameters], None, 40, specifiers,
                            draw.chance(0.2), True)
        pointer = f"static __typeof__({function.name}) *volatile by_pointer_{function.name} = {function.name};"
        function.node = Node(function.prototype() + " {", [Node(line, keep=True) for line in lines], "}",
                             *([pointer] if function.is_called_by_pointer else []), "", keep=True)
        chain.functions.append(function)


@kind(4)
def over_list(writer):
    """Each item of a list, which may change meanwhile."""
    draw = writer.draw
    heads = [head for head in writer.scope.heads if not head.chain.is_tree]
    if not heads or writer.depth >= DEPTH_MAX or not writer.can_repeat(ITEMS_MAX // 2):
        return None
    head = draw.choice(heads)
    name = head.chain.struct.name
    q, i = writer.name("q"), writer.name("i")
    inner = writer.inner(ITEMS_MAX // 2, is_loop=True)
    inner.scope.objects.append(through(q, head.chain.struct, head.is_owned))
    return Node("{", f"    NVL struct {name} *{q} = {head.lvalue};",
                f"    for (int {i} = 0; {q} && {i} < {2 * ITEMS_MAX}; {i}++, {q} = {q}->next) {{", inner.block(), "    }", "}")


@kind(2)
def first_item(writer):
    """The first item of a list or a tree is an object like others; another one may point to it."""
    heads = writer.scope.heads
    if not heads or writer.depth >= DEPTH_MAX:
        return None
    head = writer.draw.choice(heads)
    q = writer.name("q")
    inner = writer.inner()
    inner.scope.objects.append(through(q, head.chain.struct, head.is_owned))
    return Node("{", f"    NVL struct {head.chain.struct.name} *{q} = {head.lvalue};", f"    if ({q}) {{", inner.block(2), "    }", "}")
