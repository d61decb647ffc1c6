"""Random C programs, which mean the same with their data in ordinary memory and in NVM.

program.py makes one: types (data.py), the data of the program (places.py), functions (functions.py, parameters.py) whose bodies
(body.py) are statements (statements.py, loops.py, pointers.py, observed.py, transactions.py) over expressions (expressions.py) of
what is in scope (scope.py), lists and trees (chains.py), checksums (sums.py), and steps that use all that. It is a tree of
statements (tree.py), of which reduce.py leaves some out. variants.py tells in which ways it is compiled, and runs.py runs it, also
killed; counts.py lets it look whether its pointers are counted.
"""
