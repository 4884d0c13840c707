"""The change that lets a function search for itself: a loop that tries other numbers in a table, and keeps the best result.

A function that reads a table of numbers and returns something gets another one around it, of the same name: it calls the
old one with the table changed in one place after the other, by ever smaller steps, and returns the best of what came out.
What is best nobody has told us, so it is guessed: more or less of something one can see in the results. Whether the guess
was right is for the score to say, and a loop that is there can be drawn anew. All numbers of the loop stand in the source,
where they can be changed like any others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharpen.core.rng import Stream

_FEWEST = 4
"""Numbers that make a table."""
_TRIES = (200, 400, 800)
_REACHES = (0.05, 0.1, 0.2, 0.4)
"""The largest step, in parts of the distance between the least and the largest number of the table."""
_KEPT, _MORE_TRIES, _OTHER_REACH = 0.7, (1, 1, 2, 4), (0.5, 1, 1, 2)
"""How often a loop that is drawn anew keeps its guess, and by what its numbers are then multiplied."""
_MOST_TRIES = 4000
"""To begin again elsewhere brings more than to go on for longer, and a program must keep within its time."""
_SEEDS = 99

_LOOP = '''\
def {name}({arguments}):
    """The best of what `{inner}` comes to with numbers near those of {table}."""
    import random

    draw, tries, reach = random.Random({seed}), {tries}, {reach}
    table, found = list({table}), {inner}({arguments}, {table})
    for left in range(tries, 0, -1):
        other, at = list(table), draw.randrange(len(table))
        other[at] = {moved}
        made = {inner}({arguments}, other)
        if {guess}:
            table, found = other, made
    return found'''
_PLAIN = "plain_"
_MOVED = "value + draw.uniform(-reach, reach) * left / tries"


@dataclass(frozen=True, slots=True)
class Loop:
    """A function that can get such a loop, or has one around it (`outer`) that can be another, and the table it reads."""

    function: ast.FunctionDef
    outer: ast.FunctionDef | None
    table: str
    rows: bool
    """Whether the table has rows of numbers, rather than numbers."""
    spread: float
    """From the least to the largest of its numbers."""

    @property
    def name(self) -> str:
        return self.function.name.removeprefix(_PLAIN)

    @property
    def inner(self) -> str:
        return _PLAIN + self.name

    def around(self, rng: Stream) -> str:
        """The text of the function that calls the old one, which is called `inner` and is given the table. Where there is a
        loop already: one with another guess in its place, or with the same one and other numbers."""
        arguments = ", ".join(name for name in _arguments(self.function) if name != self.table)
        moved = f"tuple({_MOVED} for value in table[at])" if self.rows else _MOVED.replace("value", "table[at]", 1)
        drawn = self._first(rng)
        if (now := _drawn(self.outer)) is not None and rng.random() < _KEPT:
            tries = min(_MOST_TRIES, now.tries * rng.choice(_MORE_TRIES))
            drawn = _Drawn(now.guess, max(now.tries, tries), now.reach * rng.choice(_OTHER_REACH))
        return _LOOP.format(
            name=self.name, inner=self.inner, table=self.table, arguments=arguments, moved=moved, guess=drawn.guess,
            tries=drawn.tries, reach=float(f"{drawn.reach:.3g}"), seed=1 + rng.below(_SEEDS),
        )  # fmt: skip

    def _first(self, rng: Stream) -> _Drawn:
        worth = rng.choice(list(_worths(self.function)))
        guess = f"{worth.format('made')} {rng.choice(('<', '>'))} {worth.format('found')}"
        return _Drawn(guess, rng.choice(_TRIES), rng.choice(_REACHES) * self.spread)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What tells one loop from another: what it compares by, how often it tries, and how far it reaches."""

    guess: str
    tries: int
    reach: float


def _drawn(outer: ast.FunctionDef | None) -> _Drawn | None:
    """What the loop that is there was drawn to be, or has become; None where there is none to recognise."""
    if outer is None:
        return None
    tests = [node.test for node in ast.walk(outer) if isinstance(node, ast.If)]
    numbers = [node.value for node in ast.walk(outer) if isinstance(node, ast.Constant)]
    tries = max((n for n in numbers if isinstance(n, int)), default=0)
    reach = max((n for n in numbers if isinstance(n, float)), default=0.0)
    return _Drawn(ast.unparse(tests[0]), tries, reach) if tests and tries and reach else None


def loops(tree: ast.Module) -> Iterator[Loop]:
    """Every function of a program that reads a table of the module, with each table it reads; of one that has a loop, the
    table it is given."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_plain(node)}
    for name, function in functions.items():
        outer = functions.get(name.removeprefix(_PLAIN)) if name.startswith(_PLAIN) else None
        if _PLAIN + name in functions or (outer is None and name.startswith(_PLAIN)):
            continue
        given = set(_arguments(function))
        read = given if outer else {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} - given
        for table, value in _tables(tree):
            numbers = _numbers(value)
            if table in read and numbers:
                rows = not isinstance(value.elts[0], ast.Constant | ast.UnaryOp)
                yield Loop(function, outer, table, rows, max(numbers) - min(numbers) or 1.0)


def _tables(tree: ast.Module) -> Iterator[tuple[str, ast.List | ast.Tuple]]:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.List | ast.Tuple)
            and isinstance(node.targets[0], ast.Name)
            and len(node.targets) == 1
        ):
            yield node.targets[0].id, node.value


def _numbers(table: ast.List | ast.Tuple) -> list[float]:
    """The numbers of a table; none where there is anything else in it, or a whole number, or too few."""
    rows: Sequence[ast.expr] = table.elts
    if rows and all(isinstance(row, ast.List | ast.Tuple) for row in rows):
        rows = [cell for row in rows if isinstance(row, ast.List | ast.Tuple) for cell in row.elts]
    found = []
    for cell in rows:
        negative = isinstance(cell, ast.UnaryOp) and isinstance(cell.op, ast.USub)
        inner = cell.operand if isinstance(cell, ast.UnaryOp) else cell
        if not isinstance(inner, ast.Constant) or not isinstance(inner.value, float):
            return []
        found.append(-inner.value if negative else inner.value)
    return found if len(found) >= _FEWEST else []


def _is_plain(function: ast.FunctionDef) -> bool:
    """Whether it can be called by its arguments' names in order, and gives something back."""
    given = function.args
    others = given.vararg or given.kwarg or given.kwonlyargs or given.defaults or function.decorator_list
    return not others and isinstance(function.body[-1], ast.Return) and bool(given.args)


def _arguments(function: ast.FunctionDef) -> list[str]:
    return [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]


def _worths(function: ast.FunctionDef) -> Iterator[str]:
    """What results can be compared by: a number that is returned, the sum of a list, or of one column of a list of rows."""
    last = function.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    if not isinstance(value, ast.ListComp):
        yield "{}"
        return
    columns = len(value.elt.elts) if isinstance(value.elt, ast.Tuple | ast.List) else 0
    if not columns:
        yield "sum({})"
    for column in range(columns):
        yield f"sum(row[{column}] for row in {{}})"
