"""YAML as a configuration means it. A key that stands twice is an error here, where YAML's own readers let the last one win
and lose the first without a word; so is an alias for something that it is itself a part of."""

from __future__ import annotations

from typing import Any

import yaml

from sharpen.core.errors import UsageError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader in C, where it was built: ten times as fast."""


def parse(text: str, where: str) -> Any:
    """What a text says; `where` names it in messages. `yaml.YAMLError` where it is no YAML."""
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, where, (), set())
        return loader.construct_document(node)
    except RecursionError:
        raise UsageError(f"{where}: nested too deeply") from None
    finally:
        loader.dispose()


def _check(node: yaml.Node, where: str, around: tuple[yaml.Node, ...], seen: set[int]) -> None:
    """Complain of keys that stand twice and of circles; before merges (`<<`), which may repeat a key on purpose."""
    if any(node is outer for outer in around):
        raise UsageError(f"{where}, line {_line(node)}: what stands here contains itself, by an alias")
    if id(node) in seen or isinstance(node, yaml.ScalarNode):
        return
    within = (*around, node)
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
            _check(key, where, within, seen)
            _check(value, where, within, seen)
    else:
        for value in node.value:
            _check(value, where, within, seen)
    seen.add(id(node))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
