"""A task made from a data file or folder and a few settings, with no code."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
        wanted = [] if self.template is None else _places(self.template)
        items = {item.digest: item for name in SPLITS for item in splits[name]}
        for where, item in ((where, items[place]) for place, where in places.items() if place in items):
            for name in wanted:
                if name not in item.inputs:
                    hint = nearest(name, list(item.inputs))
                    raise UsageError(f"{where}: no field {name!r}, which the template names{hint}")
            try:
                metrics.check(self.scorer, item)
            except metrics.BadReference as error:
                raise UsageError(f"{where}: {error.problem}") from error


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
