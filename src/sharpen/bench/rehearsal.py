"""Jobs of no consequence, carried out before the first that counts.

Python does much only once per process: it imports, fills caches, and makes code faster that has run before. A process that
has carried out a few jobs has all of that behind it, and so have its copies: a job that begins as one neither does it
again nor copies the memory it would be done in. What is rehearsed is our own code with a scripted model, on data from a
file and on a built-in task; the tasks, trainers and models that others wrote first run in the jobs themselves.
"""

from __future__ import annotations

import io
import itertools
import json
import tempfile
from contextlib import redirect_stderr, suppress
from pathlib import Path

from sharpen.bench.config import RunConfig, dump
from sharpen.bench.job_process import Together, carry_out
from sharpen.bench.layout import JOB_CONFIG, RunFolder
from sharpen.bench.runner import build
from sharpen.bench.study import task_key
from sharpen.core.errors import StorageError
from sharpen.files import write_atomic
from sharpen.tasks.datatask import DataTask

_TIMES = 2
"""The first run leaves code marked as worth making faster, the second makes it so."""
_ROWS = "rows.jsonl"
_MODEL = "scripted/rules?noise=0.1"


def rehearse() -> list[int]:
    """Carry the jobs out in a folder that is then removed, and say how they ended. Where there is no room for that, it is
    left at what was done."""
    ended: list[int] = []
    with suppress(StorageError, OSError), tempfile.TemporaryDirectory() as made, redirect_stderr(io.StringIO()):
        home = Path(made)
        rows = ({"input": f"question {number}", "answer": f"answer {number}"} for number in range(9))
        (home / _ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        tasks = ({"name": str(home / _ROWS), "ratio": "1:1:1"}, {"name": "codebook", "limit": 3})
        for seed, task in itertools.product(range(_TIMES), tasks):
            settings = {"task": task, "trainer": {"name": "noop"}, "models": {"target": _MODEL}, "seed": seed}
            job_id = _laid_out(RunConfig.model_validate(settings), home)
            ended.append(carry_out(home, job_id, together=Together(2, home / "limits")))
    return ended


def _laid_out(config: RunConfig, home: Path) -> str:
    """Write what a job needs to be there, and say which job it is."""
    parts = build(config)
    folder = RunFolder(home, task_key(config.task))
    if isinstance(parts.setup.task, DataTask):
        parts.setup.task.write(folder.data)
    job_id = parts.setup.spec.job_id
    write_atomic(folder.job(job_id) / JOB_CONFIG, dump(config, parts.trainer.params))
    return job_id
