"""Small changes of a Python program: what can be changed in it, and the program with one of these changes made.

A `Program` is a source text with its syntax tree. `sites` finds every place where a kind of change can be made; a
`Site` turns a stream of random numbers into a `Change`: which stretch of the source becomes what, and why. The text
around it stays as it is, comments and layout included. Nothing here knows what a program is for, and nothing checks
whether the result is a program: that is `syntax.py`'s business.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from sharpen.core.rng import Stream
from sharpen.trainers.reflact.proposers.improving import Loop, loops

NUMBERS, CONSTANTS, OPERATORS, EXPRESSIONS, STATEMENTS, LOOPS = KINDS = (
    "numbers", "constants", "operators", "expressions", "statements", "loops",
)  # fmt: skip
"""Constants are the numbers outside of functions. A table has so many that those of functions would hardly get a turn."""

_TOGETHER = 4
"""Numbers of one display, such as the two of a point, are also changed together, up to so many."""
_DIGITS = 6
_MANY = 10
"""Whole numbers from here on are changed in parts of themselves rather than by one."""
_LARGEST = 1e300
"""So that no number becomes one that can't be written."""
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_BOOLEAN = {ast.And: "and", ast.Or: "or"}
_PARTNERS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Subscript, ast.Attribute)


@dataclass(frozen=True, slots=True)
class Change:
    """The bytes [start, end) of a source become `text`."""

    start: int
    end: int
    text: str
    reason: str

    def on(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


@dataclass(frozen=True, slots=True)
class Site:
    """A place where something can be changed. `make` draws the change; its second argument makes steps larger above 0 and
    smaller below."""

    kind: str
    make: Callable[[Stream, float], Change | None]


@dataclass(frozen=True)
class Program:
    """A source text that parses. What stands in for an expression of it is another one of the same function, or a name
    that function is given."""

    text: str

    @cached_property
    def source(self) -> bytes:
        return self.text.encode()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _range(self) -> tuple[float, float]:
        """From the least to the largest of the numbers with a point."""
        found = [
            value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.expr) and isinstance(value := _number(node), float)
        ]
        return (min(found), max(found)) if found else (0.0, 1.0)

    @cached_property
    def _lines(self) -> list[int]:
        starts = [0]
        for line in self.source.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def segment(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def sites(self) -> list[Site]:
        """Every place where a change can be made, in the order of the source."""
        found: list[Site] = []
        for body, scope in _scopes(self.tree):
            numbers = NUMBERS if scope is not None else CONSTANTS
            donors = sorted({*(scope or ()), *(self.segment(node) for node in _expressions(body) if _is_small(node))})
            for node in _walk(body):
                found += self._of_expression(node, donors, numbers) if isinstance(node, ast.expr) else ()
                found += self._of_statement(node)
            found += self._of_block(body)
        found += [Site(LOOPS, lambda rng, _, loop=loop: self._looped(loop, rng)) for loop in loops(self.tree)]  # type: ignore[misc]
        return found

    def _of_expression(self, node: ast.expr, donors: Sequence[str], numbers: str) -> Iterator[Site]:
        if isinstance(node, ast.Tuple | ast.List) and 2 <= len(node.elts) <= _TOGETHER and _are_numbers(node.elts):
            yield Site(numbers, lambda rng, bold: self._moved_together(node.elts, rng, bold))
        if _number(node) is not None:
            yield Site(numbers, lambda rng, bold: self._other_number(node, rng, bold))
            return
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            yield Site(OPERATORS, lambda rng, _: self._operator(node.left, node.right, node.op, _ARITHMETIC, rng))
            yield Site(EXPRESSIONS, lambda rng, _: self._swapped(node.left, node.right))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            left, right, sign = node.left, node.comparators[0], node.ops[0]
            yield Site(OPERATORS, lambda rng, _: self._operator(left, right, sign, _COMPARISONS, rng))
        elif isinstance(node, ast.BoolOp):
            yield Site(OPERATORS, lambda rng, _: self._operator(node.values[0], node.values[1], node.op, _BOOLEAN, rng))
        elif isinstance(node, ast.IfExp):
            yield Site(EXPRESSIONS, lambda rng, _: self._swapped(node.body, node.orelse))
        elif isinstance(node, ast.Call):
            if len(node.args) == 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
                yield Site(EXPRESSIONS, lambda rng, _: self._swapped(*node.args))
            if isinstance(name := node.func, ast.Name) and name.id in _PARTNERS:
                yield Site(OPERATORS, lambda rng, _: self._partner(name))
        if _is_value(node):
            yield Site(EXPRESSIONS, lambda rng, _: self._stand_in(node, donors, rng))
            yield Site(OPERATORS, lambda rng, _: self._combined(node, donors, rng))

    def _of_statement(self, node: ast.AST) -> Iterator[Site]:
        if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
            yield Site(
                OPERATORS, lambda rng, _: self._operator(node.target, node.value, node.op, _ARITHMETIC, rng, "=")
            )
        if isinstance(node, ast.If | ast.While):
            yield Site(OPERATORS, lambda rng, _: self._wrapped(node.test, "not ", "the condition the other way round"))
        if isinstance(node, ast.For | ast.While | ast.If | ast.With):
            yield from self._of_block(node.body)

    def _of_block(self, body: Sequence[ast.stmt]) -> Iterator[Site]:
        """Leaving out, repeating and exchanging statements; definitions, imports and the block's last one stay."""
        movable = [
            node
            for node in body[:-1]
            if isinstance(node, ast.Assign | ast.AugAssign | ast.If | ast.For)
            or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant))
        ]
        for node in movable:
            yield Site(STATEMENTS, lambda rng, _, node=node: self._left_out(node))  # type: ignore[misc]
            yield Site(STATEMENTS, lambda rng, _, node=node: self._repeated(node))  # type: ignore[misc]
        for one, other in pairwise(movable):
            yield Site(STATEMENTS, lambda rng, _, pair=(one, other): self._swapped(*pair))  # type: ignore[misc]

    def _other_number(self, node: ast.expr, rng: Stream, bold: float) -> Change:
        value = _number(node)
        assert value is not None
        text = _written(self._moved([value], rng, bold)[0])
        return Change(*self.span(node), text, f"{text} instead of {self.segment(node)}")

    def _moved_together(self, nodes: Sequence[ast.expr], rng: Stream, bold: float) -> Change:
        start, end = self.span(nodes[0])[0], self.span(nodes[-1])[1]
        values = [value for node in nodes if (value := _number(node)) is not None]
        text = ", ".join(map(_written, self._moved(values, rng, bold)))
        return Change(start, end, text, f"{text} instead of {self.source[start:end].decode()}")

    def _moved(self, values: Sequence[int | float], rng: Stream, bold: float) -> list[int | float]:
        """Other numbers in place of these: mostly near by, by a step whose size is drawn anew each time; now and then
        anywhere between the least and the largest number of the program."""
        way = rng.random()
        if way < 0.15:
            low, high = self._range
            return [v if isinstance(v, int) else low + (high - low) * rng.random() for v in values]
        if way < 0.2:
            return [rng.choice((-v, 2 * v, v // 2 if isinstance(v, int) else v / 2)) for v in values]
        step = 10.0 ** (-0.5 - 2.5 * rng.random() + bold)
        return [_stepped(value, rng, step) for value in values]

    def _operator(
        self, left: ast.expr, right: ast.expr, op: ast.AST, signs: Mapping[Any, str], rng: Stream, behind: str = ""
    ) -> Change | None:
        old = signs[type(op)]
        new = rng.choice([sign for sign in signs.values() if sign != old])
        start, end = self.span(left)[1], self.span(right)[0]
        between = self.source[start:end].decode()
        if between.count(old + behind) != 1:
            return None
        return Change(
            start, end, between.replace(old + behind, new + behind), f"{new}{behind} instead of {old}{behind}"
        )

    def _swapped(self, one: ast.expr | ast.stmt, other: ast.expr | ast.stmt) -> Change | None:
        (start, middle), (rest, end) = self.span(one), self.span(other)
        between = self.source[middle:rest].decode()
        if self.segment(one) == self.segment(other):
            return None
        text = self.segment(other) + between + self.segment(one)
        return Change(start, end, text, f"{_short(self.segment(one))} and {_short(self.segment(other))} exchanged")

    def _partner(self, name: ast.Name) -> Change:
        new = _PARTNERS[name.id]
        return Change(*self.span(name), new, f"{new} instead of {name.id}")

    def _stand_in(self, node: ast.expr, donors: Sequence[str], rng: Stream) -> Change | None:
        old = self.segment(node)
        others = [text for text in donors if text != old]
        if not others:
            return None
        new = rng.choice(others)
        return Change(*self.span(node), _bracketed(new), f"{_short(new)} instead of {_short(old)}")

    def _combined(self, node: ast.expr, donors: Sequence[str], rng: Stream) -> Change | None:
        """The expression with something added to it, multiplied by something, or negated."""
        old = self.segment(node)
        if rng.below(4) == 0 or not donors:
            return self._wrapped(node, "-", f"-{_short(old)} instead of {_short(old)}")
        sign, other = rng.choice(list(_ARITHMETIC.values())), rng.choice(donors)
        weight = rng.choice(("", "0.1 * ", "0.5 * ", "2 * "))
        text = f"({_bracketed(old)} {sign} {weight}{_bracketed(other)})"
        return Change(*self.span(node), text, f"{_short(text)} instead of {_short(old)}")

    def _wrapped(self, node: ast.expr, before: str, reason: str) -> Change:
        return Change(*self.span(node), f"({before}{_bracketed(self.segment(node))})", reason)

    def _looped(self, loop: Loop, rng: Stream) -> Change:
        """The function under another name, given the table, and one around it that tries other numbers; or another one."""
        text, reason = loop.around(rng), f"{loop.name} tries other numbers in {loop.table}"
        if loop.outer is not None:
            return Change(*self.span(loop.outer), text, f"{reason}, in another way")
        (start, end), given = self.span(loop.function), loop.function.args
        last = max(self.span(arg)[1] for arg in (*given.posonlyargs, *given.args))
        old = self.source[start:last].decode().replace(f"def {loop.name}", f"def {loop.inner}", 1)
        return Change(start, end, f"{old}, {loop.table}{self.source[last:end].decode()}\n\n\n{text}", reason)

    def _left_out(self, node: ast.stmt) -> Change:
        start, end = self.span(node)
        first = self.source.rfind(b"\n", 0, start) + 1
        return Change(first, min(end + 1, len(self.source)), "", f"without {_short(self.segment(node))}")

    def _repeated(self, node: ast.stmt) -> Change:
        start, end = self.span(node)
        indent = self.source[self.source.rfind(b"\n", 0, start) + 1 : start].decode()
        text = self.segment(node)
        return Change(end, end, f"\n{indent}{text}", f"{_short(text)} twice")


def _scopes(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], list[str] | None]]:
    """The statements of the module itself and of each function, with the names a function is given; None for the module."""
    yield [node for node in tree.body if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)], None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.body, [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def _walk(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Everything in these statements that is worked with, without what other functions own, annotations and text."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr | ast.Import | ast.ImportFrom
        ):
            continue
        yield node
        if isinstance(node, ast.expr) and _number(node) is not None:
            continue
        skipped = (node.annotation,) if isinstance(node, ast.AnnAssign) else ()
        stack += [child for child in reversed(list(ast.iter_child_nodes(node))) if child not in skipped]


def _expressions(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    return (node for node in _walk(body) if isinstance(node, ast.expr) and _is_value(node))


def _is_value(node: ast.expr) -> bool:
    """Whether an expression gives something and could be another one: nothing that is assigned to, and no text."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.Name | ast.Subscript | ast.Attribute):
        return isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.BinOp | ast.Call | ast.UnaryOp)


def _is_small(node: ast.expr) -> bool:
    return sum(1 for _ in ast.walk(node)) <= 12


def _number(node: ast.expr) -> int | float | None:
    """The value of a number as it is written, its sign included."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand) if isinstance(node.operand, ast.Constant) else None
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value if math.isfinite(node.value) else None
    return None


def _are_numbers(nodes: Sequence[ast.expr]) -> bool:
    return all(_number(node) is not None for node in nodes)


def _stepped(value: int | float, rng: Stream, step: float) -> int | float:
    """A number near by. Whether `step` is relative or absolute is drawn too: a number's size need not tell its scale."""
    if isinstance(value, int):
        if abs(value) >= _MANY and rng.random() < 0.5:
            return round(value * rng.choice((0.5, 0.7, 0.9, 1.1, 1.4, 2.0)))
        near = (value - 1, value + 1)
        return rng.choice(near if value == 0 or rng.random() < 0.6 else (*near, -value, 2 * value, value // 2))
    unit = abs(value) if rng.random() < 0.5 else 1.0
    return value + rng.choice((-1.0, 1.0)) * (0.3 + 0.7 * rng.random()) * step * unit


def _written(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    inside = min(_LARGEST, max(-_LARGEST, value))
    return repr(float(f"{inside:.{_DIGITS}g}"))


def _bracketed(text: str) -> str:
    try:
        atom = isinstance(ast.parse(text, mode="eval").body, _ATOMS)
    except SyntaxError:
        return f"({text})"  # a stretch over several lines, which only brackets hold together
    return text if atom else f"({text})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"
