"""Which answers may reach a scorer that evaluates them.

Some scorers of reasoning-gym hand the answer to `eval` or to sympy's parser, which is `eval` with more names. An answer is
written by a model, so it could run any code in our process, or ask for a number that takes forever. Where a data set's
scorer makes such a call, an answer goes on only if it is plainly harmless: a text that can't call anything, or an expression
of numbers, names, lists, arithmetic with small powers, and a few mathematical functions.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap

_EVALUATORS = ("eval", "exec", "parse_expr", "sympify", "S")
_FUNCTIONS = frozenset(
    ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "ln", "sqrt", "Abs", "abs")
)
_SHAPES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Name, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitXor, ast.BitAnd, ast.UAdd, ast.USub,
)  # fmt: skip
_LONGEST = 2000
_LARGEST_POWER = 50
_LARGEST_NUMBER = 10**30


def evaluates(kind: type) -> bool:
    """Whether the scorer of a data set, or what it calls in its own module, evaluates text."""
    module, seen = sys.modules[kind.__module__], {"score_answer"}
    waiting: list[object] = [kind.score_answer]  # type: ignore[attr-defined]  # every data set has one
    while waiting:
        source = textwrap.dedent(inspect.getsource(waiting.pop()))  # type: ignore[arg-type]  # functions, all of them
        for call in (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
            name = call.id if isinstance(call, ast.Name) else call.attr if isinstance(call, ast.Attribute) else ""
            own = getattr(kind, name, None) or getattr(module, name, None)
            if inspect.isfunction(own) and own.__module__.startswith("reasoning_gym."):
                if name not in seen:
                    waiting.append(own)
                seen.add(name)
            elif name in _EVALUATORS:
                return True
    return False


def harmless(answer: str) -> bool:
    """Whether evaluating `answer` can do nothing but arithmetic, and not for long."""
    if len(answer) > _LONGEST:
        return False
    try:
        tree = ast.parse(answer.strip(), mode="eval")
    except SyntaxError:
        return _calls_nothing(answer)
    except (ValueError, RecursionError, MemoryError):
        return False
    return _fine(tree, powers=0)


def _calls_nothing(text: str) -> bool:
    """Without a bracket there is no call, without an exclamation mark no factorial, which sympy reads where Python does
    not; and a power could be read where other characters make it no Python."""
    return not any(part in text for part in ("(", "!", "**", "@"))


def _fine(node: ast.AST, powers: int) -> bool:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _calls_nothing(node.value)  # a parser may evaluate a text within a list once more
        return isinstance(node.value, int | float) and abs(node.value) <= _LARGEST_NUMBER
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
        return known and all(not _is_text(part) and _fine(part, powers) for part in node.args)
    if not isinstance(node, _SHAPES):
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        powers += 1
        if powers > 2 or not _small(node.right):
            return False
    return all(_fine(part, powers) for part in ast.iter_child_nodes(node))


def _is_text(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node))


def _small(exponent: ast.AST) -> bool:
    """Whether an exponent has no power, no call and no large number in it."""
    for part in ast.walk(exponent):
        if isinstance(part, ast.Pow | ast.Mult | ast.Call):
            return False
        if isinstance(part, ast.Constant) and not (
            isinstance(part.value, int | float) and abs(part.value) <= _LARGEST_POWER
        ):
            return False
    return True
