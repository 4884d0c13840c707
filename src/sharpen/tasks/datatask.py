"""A task made from a data file or folder and a few settings, with no code."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.chat import read_conversation
from sharpen.core.digest import digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Brief, Splits
from sharpen.tasks import datafile, metrics, splitting
from sharpen.tasks.textual import TextTask


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """What can be said about a task that is only data. `skill` is the text training starts from, or a file that holds it."""

    metric: str = "exact_match"
    ratio: str = splitting.DEFAULT_RATIO
    split_seed: int = 0
    limit: int | None = None
    fields: Mapping[str, str] | str | None = None
    drop_duplicates: bool = False
    template: str | None = None
    skill: str | None = None
    max_tokens: int = 64
    stop: tuple[str, ...] | list[str] | None = None
    description: str = ""

    def __post_init__(self) -> None:
        for name in ("metric", "ratio", "template", "skill", "description"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name in ("template", "skill")):
                raise UsageError(f"{name} must be a text, got {value!r}")
        splitting.check_limit(self.limit)
        splitting.parse_ratio(self.ratio)
        for name in ("split_seed", "max_tokens"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise UsageError(f"{name} must be a whole number of 0 or more, got {value!r}")


_STRUCTURED = "lists and objects as JSON, conversations as messages"
"""How inputs that are no texts are asked: part of the version of a task that has such."""
_DOUBLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class DataTask(TextTask):
    """A text task whose items come from `path`. It is called after the file or folder."""

    def __init__(self, path: Path, settings: DataSettings | None = None) -> None:
        self.path = path
        self.settings = settings = settings or DataSettings()
        self.name = path.stem if path.is_file() else path.resolve().name
        self.metric = settings.metric
        self.max_tokens = settings.max_tokens
        self.stop = None if settings.stop is None else tuple(settings.stop)
        self.template = settings.template
        self.skill = _skill(settings.skill)
        self.brief = Brief(description=settings.description)
        data = self._load()
        splits = splitting.limited(data.splits, settings.limit, settings.split_seed)
        if self.metric == "choice":
            self.labels = _labels(splits)
        super().__init__()
        self._splits = splits
        if any(isinstance(value, list | dict) for item in self.items() for value in item.inputs.values()):
            self.version = digest([self.version, _STRUCTURED])[:12]
        self._check(splits, data.places)

    def items(self) -> list[Item]:
        return [item for name in SPLITS for item in self.splits()[name]]

    def write(self, folder: Path) -> None:
        """Write the splits out, with their manifest."""
        by_ratio = self.path.is_file()
        splitting.write_manifest(
            folder,
            self.splits(),
            source=self.path.name,
            ratio=self.settings.ratio if by_ratio else None,
            seed=self.settings.split_seed if by_ratio else None,
        )

    def _load(self) -> datafile.Located:
        settings = self.settings
        reading = datafile.Reading(
            datafile.parse_fields(settings.fields),
            needs_input=settings.template is None,
            drop_duplicates=settings.drop_duplicates,
        )
        return datafile.located(self.path, reading, ratio=settings.ratio, seed=settings.split_seed)

    def _check(self, splits: Splits, places: Mapping[str, str]) -> None:
        """Meet what only shows when an item is asked or scored now, not after an hour of training."""
        items = {item.digest: item for name in SPLITS for item in splits[name]}
        self._check_braces({name for item in items.values() for name in item.inputs})
        wanted = [] if self.template is None else _places(self.template)
        for where, item in ((where, items[place]) for place, where in places.items() if place in items):
            for name in wanted:
                if name not in item.inputs:
                    hint = nearest(name, list(item.inputs))
                    raise UsageError(f"{where}: no field {name!r}, which the template names{hint}")
            self._check_conversations(item, wanted, where)
            try:
                metrics.check(self.scorer, item)
            except metrics.BadReference as error:
                raise UsageError(f"{where}: {error.problem}") from error

    def _check_braces(self, columns: set[str]) -> None:
        for match in _DOUBLE.finditer(self.template or ""):
            if match[1] in columns:
                working = _DOUBLE.sub(lambda one: f"{{{one[1]}}}" if one[1] in columns else one[0], self.template or "")
                raise UsageError(
                    f"template {self.template!r}: {match[0]} stands for the text {{{match[1]}}}, not for the column; write "
                    f"task.template='{working}'"
                )

    def _check_conversations(self, item: Item, wanted: Sequence[str], where: str) -> None:
        """A conversation is asked as it is, so it must be whole, and can't be put inside a template."""
        for name in wanted or ["input"]:
            try:
                chat = read_conversation(item.inputs.get(name))
            except ValueError as error:
                if not wanted:
                    raise UsageError(f"{where}: the input: {error}") from None
                continue
            if chat is not None and wanted:
                raise UsageError(
                    f"{where}: {name!r} holds a conversation, and the template names it; a conversation is asked as it is, "
                    f"without task.template: task.fields={{input: {name}}}"
                )


def _places(template: str) -> list[str]:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise UsageError(f"template {template!r}: {error}; write fields as {{name}} and braces as {{{{ }}}}") from error
    if not names or not all(name.isidentifier() for name in names):
        raise UsageError(f"template {template!r} must name its fields, as in '{{context}} {{input}}'")
    return names


def _labels(splits: Splits) -> tuple[str, ...]:
    """Every answer of the data. Of an item with several accepted answers, each is a label."""
    answers = (item.reference for name in SPLITS for item in splits[name])
    found = {str(label) for answer in answers for label in (answer if isinstance(answer, list) else [answer])}
    return tuple(sorted(found))


def _skill(skill: str | None) -> str:
    if skill is None:
        return TextTask.skill
    if skill.endswith((".md", ".txt")) and "\n" not in skill:
        try:
            skill = Path(skill).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read the skill {skill}: {error.strerror}") from error
    if not skill.strip():
        raise UsageError("the skill to start from is empty; give at least one line")
    return skill
