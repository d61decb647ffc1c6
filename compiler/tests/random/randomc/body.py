"""The place in a function where statements are written, and the table of their kinds."""

import copy

from .tree import Node

# How often one statement may run in a call, and what a step may cost, in statements.
TIMES_MAX = 600
STEP_COST_MAX = 6000
DEPTH_MAX = 4
# A transaction of its own costs as much as so many statements.
ATOMIC_COST = 20

KINDS = []


def kind(weight):
    """Says that a function makes a statement: from a Writer it gives a Node, or None if nothing is there to make it of."""

    def register(make):
        KINDS.append((weight, make))
        return make

    return register


class Spent:
    """What the statements of a function cost, and the names that it has used."""

    def __init__(self, limit):
        self.cost = 0
        self.limit = limit
        self.names = 0
        # Whether there may be a table of labels. Not where functions are always inlined, and only one: such a jump might lead
        # to any of the labels, also out of transactions.
        self.may_take_labels = False


class Writer:
    def __init__(self, draw, scope, functions, limit=STEP_COST_MAX):
        self.draw = draw
        self.scope = scope
        self.functions = functions
        self.spent = Spent(limit)
        self.times = 1
        self.depth = 0
        # Gives the text of a return, if there may be one.
        self.leave = None
        self.can_break = False
        self.can_continue = False
        self.labels = ()
        # In what a step writes before its transaction nothing has to come back.
        self.may_clobber = False
        # What is not owned is written by nobody here.
        self.is_step = False

    def name(self, letter):
        self.spent.names += 1
        return f"{letter}{self.spent.names}"

    def pay(self, cost=1):
        self.spent.cost += cost * self.times

    def can_pay(self, cost):
        return self.spent.cost + cost * self.times <= self.spent.limit

    def can_repeat(self, times):
        return self.times * times <= TIMES_MAX and self.can_pay(2 * times)

    def inner(self, times=1, is_loop=False):
        """For a block in this one."""
        writer = copy.copy(self)
        writer.scope = self.scope.inner()
        writer.depth += 1
        writer.times *= max(times, 1)
        if is_loop:
            writer.can_break = writer.can_continue = True
        return writer

    def statement(self):
        for _ in range(20):
            node = self.draw.weighted(KINDS)(self)
            if node:
                self.pay()
                return node
        return Node(";")

    def block(self, most=3):
        """A few statements, in the scope of this writer."""
        return [self.statement() for _ in range(self.draw.randrange(1, most + 1))]
