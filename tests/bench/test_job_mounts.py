"""A job of a study that damages whatever it can reach: the other jobs' files are as if it had not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
VANDAL = """
import os, shutil
from pathlib import Path

run = Path("runs/s").resolve()
harm = [p for p in [*run.glob("jobs/*/*"), *run.glob("meta/*"), *run.glob("tasks/*/*/*")]]
seen = []

def metric(answer, item):
    while harm:
        path = harm.pop()
        for damage in (lambda: path.write_text("gone"), lambda: path.chmod(0), path.unlink, lambda: shutil.rmtree(path)):
            try:
                damage()
            except OSError:
                pass
    try:
        (run / "jobs" / "mine").mkdir()
    except OSError:
        pass
    return 1.0
"""
STUDY = """
tasks: [{tasks}]
trainers: [noop]
seeds: 2
models: {{target: "scripted/rules?noise=0.1"}}
"""
GOOD, BAD = '{name: rows.jsonl, ratio: "1:1:1"}', '{name: rows.jsonl, ratio: "1:1:1", metric: "own.py:metric"}'


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("become", [[], ["unshare", "--user", "--map-user=1000", "--map-group=1000"]])
def test_a_job_that_damages_all_it_can_reach_harms_no_other(tmp_path: Path, become: list[str]) -> None:
    """As whoever runs the test, and as a user without root's rights."""
    if subprocess.run([*become, "unshare", "--map-root-user", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("this system allows no mounts of one's own")
    rows = (json.dumps({"input": f"q{n}", "answer": f"a{n}"}) for n in range(9))
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "own.py").write_text(VANDAL)

    def carry_out(*tasks: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "s.yaml").write_text(STUDY.format(tasks=", ".join(tasks)))
        home = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        command = [*become, *PROGRAM, "run", "s.yaml"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=home)

    run = tmp_path / "runs" / "s"
    done = carry_out(GOOD)
    assert done.returncode == 0, done.stderr
    assert "mounts of one's own" not in done.stderr
    before = files(run / "jobs")
    done = carry_out(GOOD, BAD)
    assert "Traceback" not in done.stderr, done.stderr
    after = files(run / "jobs")
    assert {name: after.get(name) for name in before} == before
    assert b"gone" not in (run / "meta" / "config.snapshot.yaml").read_bytes()
    assert len({name.partition("/")[0] for name in after}) == 4, "the jobs that did it ran"
    assert json.loads((run / "meta" / "manifest.json").read_text())["jobs"]
    done = carry_out(GOOD)
    assert done.returncode == 0, done.stderr
