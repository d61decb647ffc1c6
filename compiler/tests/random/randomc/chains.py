"""Lists and trees: what they are made of, and the functions that link and unlink that."""

from dataclasses import dataclass, field

from .body import DEPTH_MAX, kind
from .data import I32, U64, Field, Struct, draw_member
from .functions import Function
from .parameters import HeadParameter, NumberParameter
from .scope import through
from .tree import Node, lines_of

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


# What the functions do, by the ends of their names, with their parameters: H is a list, G another one, K a key, X 64 bits. A line
# that ends with //2 is for lists that know the way back.
LIST_FUNCTIONS = [
    ("push", "HKX", """
        if (NAME_count(*head) >= MOST)
            return;
        NVL struct NAME *made = ALLOC(1, struct NAME);
        fill_NAME(made, x);
        made->key = key;
        made->next = *head;
        if (made->next) //2
            made->next->previous = made; //2
        *head = made;
     """),
    ("append", "HKX", """
        if (NAME_count(*head) >= MOST)
            return;
        NVL struct NAME *NVL *link = head;
        NVL struct NAME *made = ALLOC(1, struct NAME), *last = NULL;
        for (; *link; link = &(*link)->next)
            last = *link;
        *link = made;
        made->previous = last; //2
        fill_NAME(made, x);
        made->key = key;
     """),
    ("insert", "HKX", """
        if (NAME_count(*head) >= MOST)
            return;
        NVL struct NAME *NVL *link = head;
        NVL struct NAME *made = ALLOC(1, struct NAME), *last = NULL;
        fill_NAME(made, x);
        made->key = key;
        for (; *link && (*link)->key < key; link = &(*link)->next)
            last = *link;
        made->next = *link;
        made->previous = last; //2
        if (made->next) //2
            made->next->previous = made; //2
        *link = made;
     """),
    ("drop", "HK", """
        NVL struct NAME *NVL *link = head;
        while (*link && (*link)->key % 8 != key % 8)
            link = &(*link)->next;
        if (*link)
            NAME_unlink(link);
     """),
    ("thin", "HK", """
        NVL struct NAME *NVL *link = head;
        for (uint32_t n = (uint32_t)key; *link; n++)
            if (n % 3)
                link = &(*link)->next;
            else
                NAME_unlink(link);
     """),
    ("reverse", "H", """
        NVL struct NAME *done = NULL;
        for (NVL struct NAME *one = *head, *next; one; one = next) {
            next = one->next;
            one->next = done;
            one->previous = NULL; //2
            if (done) //2
                done->previous = one; //2
            done = one;
        }
        *head = done;
     """),
    ("move", "HG", """
        if (!*head)
            return;
        NVL struct NAME *found = NAME_unlink(head);
        found->next = *to;
        if (*to) //2
            (*to)->previous = found; //2
        *to = found;
     """),
]
TREE_FUNCTIONS = [
    ("insert", "HKX", """
        NVL struct NAME *NVL *link = head;
        for (int depth = 0; *link && (*link)->key != key && depth < 20; depth++)
            link = key < (*link)->key ? &(*link)->left : &(*link)->right;
        if (!*link && NAME_count(*head) >= MOST)
            return;
        if (!*link)
            *link = ALLOC(1, struct NAME);
        fill_NAME(*link, x);
        (*link)->key = key;
     """),
    ("drop_first", "H", """
        NVL struct NAME *NVL *link = head;
        if (!*link)
            return;
        while ((*link)->left)
            link = &(*link)->left;
        NVL struct NAME *found = *link;
        *link = found->right;
        found->right = NULL;
     """),
    ("rotate", "H", """
        NVL struct NAME *top = *head;
        if (!top || !top->left)
            return;
        *head = top->left;
        top->left = (*head)->right;
        (*head)->right = top;
     """),
    ("mirror", "H", """
        NVL struct NAME *top = *head;
        if (!top)
            return;
        NVL struct NAME *left = top->left;
        top->left = top->right;
        top->right = left;
        NAME_mirror(&top->left);
        NAME_mirror(&top->right);
     """),
    ("add", "HX", """
        if (!*head)
            return;
        (*head)->value += x;
        NAME_add(&(*head)->left, x * 3);
        NAME_add(&(*head)->right, x + 1);
     """),
]
# What they use: the number of items, an item that is taken out where a pointer leads to it, and the checksum of all items in their
# order, and of the way back.
LIST_BEGIN = """
    static int NAME_count(NVL const struct NAME *first) {
        int n = 0;
        for (; first; first = first->next)
            n++;
        return n;
    }
    static NVL struct NAME *NAME_unlink(NVL struct NAME *NVL *link) {
        NVL struct NAME *found = *link;
        if (found->next) //2
            found->next->previous = found->previous; //2
        found->previous = NULL; //2
        *link = found->next;
        found->next = NULL;
        return found;
    }
    static uint64_t sum_all_NAME(uint64_t h, NVL const struct NAME *first) {
        NVL const struct NAME *last = NULL;
        for (; first; first = first->next) {
            h = sum_NAME(h, first, 1);
            h = mix(h, first->previous == last); //2
            last = first;
        }
        return mix(h, 2);
    }
"""
TREE_BEGIN = """
    static int NAME_count(NVL const struct NAME *first) {
        return first ? 1 + NAME_count(first->left) + NAME_count(first->right) : 0;
    }
    static uint64_t sum_all_NAME(uint64_t h, NVL const struct NAME *first) {
        if (!first)
            return mix(h, 1);
        h = sum_all_NAME(h, first->left);
        h = sum_NAME(h, first, 1);
        return sum_all_NAME(h, first->right);
    }
"""


def lines_for(chain, text):
    lines = lines_of(text, name=chain.struct.name, most=ITEMS_MAX)
    return [line.removesuffix(" //2") for line in lines if chain.is_double or not line.endswith("//2")]


def begin(chain):
    return lines_for(chain, TREE_BEGIN if chain.is_tree else LIST_BEGIN)


def make_functions(draw, chain):
    letters = {"H": HeadParameter("head", chain), "G": HeadParameter("to", chain), "K": NumberParameter("key", I32),
               "X": NumberParameter("x", U64)}
    for end, parameters, text in TREE_FUNCTIONS if chain.is_tree else LIST_FUNCTIONS:
        specifiers = draw.choice(["static ", "__attribute__((noinline)) static ", "__attribute__((noinline)) "])
        function = Function(f"{chain.struct.name}_{end}", [letters[letter] for letter in parameters], None, 40, specifiers,
                            draw.chance(0.2), is_of_chain=True)
        function.node = function.with_body([Node(line, keep=True) for line in lines_for(chain, text)])
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
    return Node("{", f"    NVL struct {head.chain.struct.name} *{q} = {head.lvalue};", f"    if ({q}) {{", inner.block(2), "    }",
                "}")
