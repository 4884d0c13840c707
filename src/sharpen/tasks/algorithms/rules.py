"""The rules of the game: what a candidate's program may use, read off its source before it runs.

They give an early message with a line to a program that could not do what it tries to: look around in its process, reach the
machine, import what is not there. No promise rests on them. Whatever gets past them finds nothing: the instance is not in
the program's process, the machine is behind the sandbox, and an answer is judged outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

MODULES = ("bisect", "collections", "functools", "heapq", "itertools", "math", "random")
_FUNCTIONS = {
    "breakpoint", "compile", "copyright", "credits", "delattr", "dir", "eval", "exec", "getattr", "globals", "help",
    "input", "license", "locals", "memoryview", "open", "setattr", "type", "vars",
}  # fmt: skip
_ATTRIBUTES = {
    "abc", "ag_await", "ag_code", "ag_frame", "attrgetter", "cr_await", "cr_code", "cr_frame", "cr_origin", "f_back",
    "f_builtins", "f_code", "f_generator", "f_globals", "f_locals", "format", "format_map", "GenericAlias",
    "get_cache_token", "gi_code", "gi_frame", "gi_yieldfrom", "methodcaller", "mro", "partialmethod", "recursive_repr",
    "singledispatch", "singledispatchmethod", "tb_frame", "tb_next", "update_wrapper", "with_traceback", "wraps",
}  # fmt: skip
"""Frames; text that names attributes (`update_wrapper` copies those it is told to); `singledispatch`, which runs what
annotations say; and what modules have imported for themselves."""
_METHODS = {f"__{name}__" for name in (
    "init", "repr", "str", "hash", "bool", "len", "iter", "next", "reversed", "contains", "getitem", "setitem",
    "delitem", "missing", "call", "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "int", "float",
    "index", "round", "floor", "ceil", "trunc", "divmod", "rdivmod",
    *(f"{way}{doing}" for way in ("", "r", "i") for doing in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
    )),
)}  # fmt: skip
_LONGEST = 40_000


def complaint(source: str, entry: str, signature: str) -> str | None:
    """What in a program is against the rules, with its line; None where nothing is."""
    if len(source) > _LONGEST:
        return f"the program has {len(source)} characters; the most is {_LONGEST}"
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"not a program: {error}"
    for node in ast.walk(tree):
        found = _against(node)
        if found is not None:
            return f"line {getattr(node, 'lineno', 1)}: {found}"
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry for node in tree.body):
        return f"there is no function {signature}"
    return None


def _against(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _imported(node)
    if isinstance(node, ast.FunctionDef) and node.name.startswith("__"):
        return None if node.name in _METHODS else f"a function called {node.name}"
    if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in _ATTRIBUTES):
        return f"use of .{node.attr}"
    if isinstance(node, ast.Name) and node.id in _FUNCTIONS:
        return f"use of {node.id}"
    if isinstance(node, ast.MatchClass | ast.AsyncFunctionDef) or (isinstance(node, ast.ClassDef) and node.keywords):
        return "a construct that has no place in a computation"
    return next((f"use of {name}" for name in _names(node) if name.startswith("__")), None)


def _imported(node: ast.Import | ast.ImportFrom) -> str | None:
    inside = isinstance(node, ast.ImportFrom)
    for name in [node.module or "."] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]:
        if name not in MODULES or (isinstance(node, ast.ImportFrom) and node.level):
            return f"import of {name}; a program may use {', '.join(MODULES)}"
    for alias in node.names:
        if inside and (alias.name.startswith(("_", "*")) or alias.name in _ATTRIBUTES):
            return f"import of {alias.name}"
    return None


def _names(node: ast.AST) -> Iterator[str]:
    """Every name that a node gives or uses; what it says in quotes is no name."""
    if isinstance(node, ast.Constant):
        return
    for _, value in ast.iter_fields(node):
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str):
                yield name
