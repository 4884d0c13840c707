"""YAML as a configuration means it. A key that stands twice is an error here, where YAML's own readers let the last one win
and lose the first without a word; so is an alias for something that it is itself a part of; and so are aliases of aliases, a
few lines of which can stand for millions of values, where they stand for too many."""

from __future__ import annotations

from typing import Any

import yaml

from sharpen.core.errors import UsageError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader in C, where it was built: ten times as fast."""


MOST = 100_000
"""Values of a document, each alias counted as what it stands for."""
_LINE = 100
"""Characters of a long text that count as one value more."""


def parse(text: str, where: str) -> Any:
    """What a text says; `where` names it in messages. `yaml.YAMLError` where it is no YAML."""
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, where, (), {})
        return loader.construct_document(node)
    except RecursionError:
        raise UsageError(f"{where}: nested too deeply") from None
    finally:
        loader.dispose()


def _check(node: yaml.Node, where: str, around: tuple[yaml.Node, ...], sizes: dict[int, int]) -> int:
    """Complain of keys that stand twice, of circles and of too many values; before merges (`<<`), which may repeat a key.
    Gives the size of a node with every alias written out. A node that was met before is not gone through again."""
    if any(node is outer for outer in around):
        raise UsageError(f"{where}, line {_line(node)}: what stands here contains itself, by an alias")
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value) // _LINE
    if id(node) in sizes:
        return sizes[id(node)]
    within = (*around, node)
    size = 1
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                before = first.setdefault((key.tag, key.value), key)
                if before is not key:
                    lines = f"line {_line(before)} and line {_line(key)}"
                    if _line(before) == _line(key):
                        lines = f"line {_line(key)}, both times"
                    raise UsageError(f"{where}: {key.value!r} stands twice, in {lines}; keep one of them")
            size += _check(key, where, within, sizes) + _check(value, where, within, sizes)
    else:
        size += sum(_check(value, where, within, sizes) for value in node.value)
    if size > MOST:
        raise UsageError(
            f"{where}, line {_line(node)}: what stands here has more than {MOST:,} values with its aliases written out"
        )
    sizes[id(node)] = size
    return size


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
