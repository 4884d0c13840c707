"""What a training came to, in the form its users need: a skill folder, or a plain prompt; `snippet` makes the third form.

Everything here is a function from what is known of a job (its events, a checkpoint's texts) to the texts of the files that
are to be written; the command writes them. Whatever is exported says where it came from: the job, the step, the scores,
with the confirmed value beside the raw one. No path of the machine it was trained on is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

import sharpen
from sharpen.bench import strict_yaml
from sharpen.bench.artifacts import results
from sharpen.core.candidate import MAIN_PART, Candidate
from sharpen.core.errors import UsageError
from sharpen.engine.checkpoints import safe_part
from sharpen.skill import examples
from sharpen.skill.document import MARKER, regions
from sharpen.tasks.render import style_named, whole_text

BEST = "best"
PLACE = "{input}"
"""Stands for the question in an exported prompt that goes on after it."""
_MOST_NAME, _MOST_DESCRIPTION = 64, 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Origin:
    """Where an export comes from. `finished` is False for what is best so far of a job that is not at its end."""

    job_id: str
    task: str
    model: str
    render: str
    checkpoint: str
    step: int
    finished: bool
    val: str
    test: str

    def facts(self) -> dict[str, str]:
        """The origin in words, by topic; what is not known is left out."""
        found = {
            "sharpen": sharpen.__version__,
            "job": self.job_id,
            "task": self.task,
            "model": f"{self.model} ({self.render})",
            "checkpoint": self._which(),
            "val": self.val,
            "test": self.test,
        }
        return {topic: words for topic, words in found.items() if words}

    def _which(self) -> str:
        words = f"step {self.step}" if self.checkpoint.startswith("step_") else f"{self.checkpoint}, step {self.step}"
        return words if self.finished else f"{words}; the job had not ended"


@dataclass(frozen=True)
class Label:
    """What the export is called and said to do; None where its own texts or the task decide."""

    name: str | None = None
    description: str | None = None


def choose(lines: Sequence[dict[str, Any]], which: str) -> str:
    """The name of the checkpoint that `which` stands for: `best` is the best so far where the job is not at its end."""
    saved: dict[str, str] = {
        line["path"].rpartition("/")[2]: line["candidate"] for line in lines if line["type"] == "checkpointed"
    }
    if which == BEST and BEST not in saved and saved:
        best = results(lines)["best"]
        return next((name for name, digest in saved.items() if best and digest == best["candidate"]), next(iter(saved)))
    if which not in saved:
        there = ", ".join(saved) or "none yet"
        raise UsageError(f"no checkpoint {which!r}; there are: {there} (best and final come with the job's end)")
    return which


def origin(lines: Sequence[dict[str, Any]], checkpoint: str, target: str) -> Origin:
    """What is known of a checkpoint from the story of its job; `target` is the model's name in the configuration."""
    started, found = lines[0], results(lines)
    saved = next(line for line in lines if line["type"] == "checkpointed" and line["path"].endswith(f"/{checkpoint}"))
    tested = next((name for name, row in found["test"].items() if row["candidate"] == saved["candidate"]), None)
    return Origin(
        job_id=started["job_id"],
        task=started["task"],
        model=model_name(target, started["models"]["target"]) if "target" in started["models"] else "no model",
        render=started["render"],
        checkpoint=checkpoint,
        step=saved["step"],
        finished=found["status"] in ("done", "budget"),
        val=_val(found["best"], saved),
        test="" if tested is None else _test(found, tested),
    )


def model_name(name: str, identity: Mapping[str, Any]) -> str:
    """A model by the name people know it by, without where it was reached or recorded."""
    inner = name.rpartition(".jsonl:")[2].partition("?")[0]
    return str(identity.get("model") or ("a recording" if inner.startswith("replay/") else inner))


def skill_folder(candidate: Candidate, made: Origin, label: Label, brief: str = "") -> dict[str, str]:
    """The files of a skill in the Agent Skills format, by path. The markers of protected regions are taken out: they are for
    training. `brief` is the task's own description, used where the texts bring none."""
    own, body = _front_matter(candidate.text)
    text = without_markers(body)
    name = checked_name(label.name or own.get("name"), made.task)
    description = _checked_description(label.description or own.get("description"), brief, text, made.task)
    metadata = own.get("metadata")
    kept = dict(metadata) if isinstance(metadata, dict) else {}
    facts = {f"sharpen-{topic}" if topic != "sharpen" else topic: words for topic, words in made.facts().items()}
    head = {"name": name, "description": description, **own, "metadata": {**kept, **facts}}
    head.update(name=name, description=description)
    others = {part: without_markers(candidate[part]) for part in candidate if part != candidate.main}
    written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
    main = f"---\n{written}---\n\n{text.strip()}\n{_pointers(text, others)}"
    return {f"{name}/{MAIN_PART}": main, **{f"{name}/{safe_part(part)}": content for part, content in others.items()}}


def prompt(candidate: Candidate, made: Origin, label: Label, brief: str = "") -> dict[str, str]:
    """The text as the model gets it, and beside it where it came from: a remark inside would be part of the prompt."""
    name = checked_name(label.name, made.task)
    if made.render == "completion":
        text = str(style_named("completion")(candidate, PLACE).prompt)
    else:
        text = f"{whole_text(candidate)}\n"
    about = {"description": label.description or brief, **made.facts()}
    return {f"{name}.prompt.txt": text, f"{name}.prompt.json": json.dumps(about, indent=2, ensure_ascii=False) + "\n"}


def without_markers(text: str) -> str:
    """A text without the markers of its protected regions; what stands in them stays."""
    if not regions(text):
        return text
    alone = re.compile(rf"^[ \t]*(?:{MARKER.pattern})[ \t]*\n?", re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", MARKER.sub("", alone.sub("", text)))


def slug(name: str) -> str:
    """A name as the format wants it: lower-case letters, digits and single hyphens, at most 64 of them."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_MOST_NAME].strip("-")
    return plain or "skill"


def checked_name(given: object, task: str) -> str:
    """A name that was given, if it can be one; the task's where none was."""
    if given is None:
        return slug(task)
    if not isinstance(given, str) or len(given) > _MOST_NAME or not _NAME.fullmatch(given):
        raise UsageError(
            f"{given!r} cannot be the name: lower-case letters, digits and single hyphens, at most {_MOST_NAME}; "
            f"give one with --name, such as {slug(str(given))!r}"
        )
    return given


def _checked_description(given: object, brief: str, text: str, task: str) -> str:
    if given is not None and not (isinstance(given, str) and given.strip()):
        raise UsageError(f"the description must be a text, got {given!r}; give one with --description")
    if given is not None and len(given) > _MOST_DESCRIPTION:
        raise UsageError(
            f"the description has {len(given)} characters, the format allows {_MOST_DESCRIPTION}; give a shorter one with "
            "--description"
        )
    if given is not None:
        return given
    words = " ".join((brief or _first_paragraph(text) or f"What was learned for the task {task}.").split())
    return words if len(words) <= _MOST_DESCRIPTION else words[: _MOST_DESCRIPTION - 1].rpartition(" ")[0] + "…"


def _first_paragraph(text: str) -> str:
    """The first prose of a skill: no heading, no list, no worked example."""
    for block in examples.parse(text).instructions.split("\n\n"):
        prose = [line for line in block.splitlines() if not re.match(r"\s*([#>|`*+-]|\d+[.)]|$)", line)]
        if prose:
            return " ".join(prose)
    return ""


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields a skill begins with, and the rest."""
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", text, re.DOTALL | re.MULTILINE)
    if match is None:
        return {}, text
    try:
        fields = strict_yaml.parse(match[1], f"the front matter of {MAIN_PART}")
    except yaml.YAMLError as error:
        raise UsageError(f"the front matter of {MAIN_PART} is not YAML: {error}") from None
    if fields is not None and not isinstance(fields, dict):
        raise UsageError(
            f"the front matter of {MAIN_PART} is {type(fields).__name__}; it must be fields such as name: x"
        )
    return fields or {}, text[match.end() :]


def _pointers(text: str, others: Mapping[str, str]) -> str:
    """Lines that lead to the further parts. In training they were always in view; here they are read when asked for."""
    unnamed = [part for part in others if part not in text]
    if not unnamed:
        return ""
    return "\n## Read these too\n\n" + "".join(f"- [{part}]({part})\n" for part in unnamed)


def _val(best: Mapping[str, Any] | None, saved: Mapping[str, Any]) -> str:
    """The score on val: confirmed where it is, and the raw one it was chosen by."""
    if best is None or best["candidate"] != saved["candidate"]:
        score = saved["metrics"].get("val")
        return "" if score is None else f"{score:.3f} raw, not confirmed"
    raw = "" if best["raw"] is None else f"{best['raw']:.3f} raw"
    confirmed = best.get("confirmed")
    if confirmed is None or confirmed["value"] is None:
        return f"{raw}, not confirmed" if raw else ""
    start = "" if confirmed["initial"] is None else f", {confirmed['initial']:.3f} at the start"
    span = f"{confirmed['value']:.3f} [{confirmed['low']:.3f}, {confirmed['high']:.3f}] confirmed ({confirmed['how']})"
    return f"{span}{start}{f'; {raw}' if raw else ''}"


def _test(found: Mapping[str, Any], which: str) -> str:
    row, gain = found["test"][which], found["gain"].get(which)
    if row["mean"] is None:
        return ""
    words = f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}] on {row['n']} items"
    if gain is None or gain["mean"] is None:
        return words
    return f"{words}; difference to the start {gain['mean']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]"
