"""Random choices, from a seed."""

import random


class Draw(random.Random):
    def chance(self, probability):
        return self.random() < probability

    def weighted(self, table):
        """One of the values of a list of pairs (weight, value)."""
        return self.choices([value for _, value in table], [weight for weight, _ in table])[0]
