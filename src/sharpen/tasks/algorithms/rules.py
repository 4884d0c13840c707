"""The rules of the game: what a candidate's program may use, read off its source before it runs.

The sandbox keeps the machine safe and the scorer checks every answer; what neither sees is a program that looks around
in the process it runs in, for items of an online problem that have not arrived yet. So a program has a few modules to
compute with, and no names that lead out of it: underscores in front, frames, and the functions that reach attributes by
text.
"""

from __future__ import annotations

import ast

MODULES = ("bisect", "collections", "functools", "heapq", "itertools", "math", "random")
_FUNCTIONS = {
    "breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "help", "input", "locals",
    "memoryview", "open", "setattr", "vars",
}  # fmt: skip
_ATTRIBUTES = {
    "ag_code", "ag_frame", "cr_code", "cr_frame", "f_back", "f_builtins", "f_code", "f_globals", "f_locals", "format",
    "format_map", "gi_code", "gi_frame", "gi_yieldfrom", "mro", "tb_frame", "tb_next", "with_traceback",
}  # fmt: skip
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
        named = [node.module or "."] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        inner = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        for name in named:
            if name not in MODULES or (isinstance(node, ast.ImportFrom) and node.level):
                return f"import of {name}; a program may use {', '.join(MODULES)}"
        return next((f"import of {name}" for name in inner if name.startswith("_")), None)
    if isinstance(node, ast.Name) and (node.id.startswith("__") or node.id in _FUNCTIONS):
        return f"use of {node.id}"
    if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in _ATTRIBUTES):
        return f"use of .{node.attr}"
    if isinstance(node, ast.MatchClass | ast.AsyncFunctionDef):
        return "a construct that has no place in a computation"
    return None
