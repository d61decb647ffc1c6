"""The ways in which the program of a seed is compiled."""

from dataclasses import dataclass

from .draw import Draw

LEVELS = ["O0", "O1", "O2", "O3"]
# TRANSACTIONS of bindings.h.
TRANSACTIONS = ["none", "parts", "whole"]
EXTRAS = {"g": ["-g"], "native": ["-march=native"], "lto": ["-flto"], "unchecked": ["-fnvl-no-checks"],
          "uncounted": ["-fnvl-no-counts", "-DUNCOUNTED"], "unclaused": ["-fnvl-no-clauses"]}
# What any program of this directory needs: figures of both are the same, and overflow of no kind is there to be warned of.
COMMON = ["-std=gnu11", "-w", "-ffp-contract=off"]
ENGINES = [(3, "shadow"), (1, "hybrid"), (1, "twin")]


@dataclass(frozen=True)
class Variant:
    level: str
    transactions: str
    is_relaxed: bool = False
    extra: str = ""

    @staticmethod
    def parse(text):
        """What `name` gives: O2-parts-relaxed-native."""
        level, transactions, *rest = text.split("-")
        extra = [word for word in rest if word != "relaxed"]
        if level not in LEVELS or transactions not in TRANSACTIONS or len(extra) > 1 or set(extra) - set(EXTRAS):
            raise ValueError(f"{text} is no variant")
        return Variant(level, transactions, "relaxed" in rest, "".join(extra))

    @property
    def name(self):
        words = [self.level, self.transactions, "relaxed" if self.is_relaxed else "", self.extra]
        return "-".join(word for word in words if word)

    @property
    def options(self):
        return [f"-{self.level}", f"-DTRANSACTIONS={TRANSACTIONS.index(self.transactions)}",
                *(["-fnvl-relaxed"] if self.is_relaxed else []), *EXTRAS.get(self.extra, [])]

    @property
    def is_durable(self):
        """Whether all that a run has stored is there when the heap is opened again."""
        return self.transactions == "whole" or not self.is_relaxed

    @property
    def bears_kills(self):
        """Whether a run that is killed anywhere can go on."""
        return self.transactions != "none" and self.is_durable


ALL = [Variant(level, transactions, is_relaxed)
       for level in LEVELS for transactions in TRANSACTIONS for is_relaxed in (False, True)]
ALL += [Variant("O3", "parts", False, extra) for extra in EXTRAS]


def some(seed):
    """One for each level; over the seeds it is all of them. Two of them at least can be killed."""
    draw = Draw(f"variants of {seed}")
    kinds = [("parts", False), ("whole", draw.chance(0.5)), ("none", draw.chance(0.5)), ("parts", draw.chance(0.5))]
    draw.shuffle(kinds)
    return [Variant(level, *one, draw.choice(list(EXTRAS)) if draw.chance(0.3) else "") for level, one in zip(LEVELS, kinds)]


def engine(seed):
    return Draw(f"engine of {seed}").weighted(ENGINES)
