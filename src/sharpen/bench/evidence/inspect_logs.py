"""Arms from logs of Inspect AI: `.eval` files, and the same as `.json`. A file is a run, a folder of either an arm.

Read are the scores of the samples (of the scorer that is named, or the only one), averaged over epochs, the task, model,
arguments, revision and usage. Inspect compresses with Zstandard, which Python has from 3.14 on; before that the package
`zstandard` or the program `zstd` is used, whichever is there.
"""

from __future__ import annotations

import importlib
import json
import shutil
import struct
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharpen.bench.evidence.json_files import LARGEST, load
from sharpen.bench.evidence.nouns import TEST, Arm, Cost, Run
from sharpen.bench.evidence.settings import flattened, without_seed
from sharpen.core.errors import UsageError

_ZSTANDARD = 93
_LOCAL_HEAD = 30
_START = 4_000
"""How much of a JSON file is looked at to see whether it is a log."""
_MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def holds(path: Path) -> bool:
    return bool(_logs(path))


def _logs(path: Path) -> list[Path]:
    """The logs that a path is, or has in it."""
    if path.is_file():
        return [path] if path.suffix == ".eval" or (path.suffix == ".json" and _is_log(path)) else []
    return sorted((*path.glob("*.eval"), *(file for file in path.glob("*.json") if _is_log(file))))


def read(path: Path, scorer: str | None = None) -> Arm:
    """A log, or a folder of logs, as an arm."""
    runs = tuple(_run(file, scorer) for file in _logs(path))
    names = [run.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{path} has {twice} as .eval and as .json: the same log counts once; take one of them away")
    return Arm(path.stem if path.is_file() else path.name, runs)


def _run(file: Path, scorer: str | None) -> Run:
    header, samples = _from_json(file) if file.suffix == ".json" else _from_zip(file)
    spec = header.get("eval") if isinstance(header, Mapping) else None
    if not isinstance(spec, Mapping):
        raise UsageError(f"{file} is no log of Inspect: it has no eval in its header")
    scores = _scores(samples, scorer, file)
    failed = sum(sample.get("error") is not None for sample in samples)
    lacks = "" if header.get("status") == "success" else f"ended with status {header.get('status')}"
    if failed and not lacks:
        lacks = f"has {failed} samples that ended in an error"
    if not scores:
        raise UsageError(f"{file} has no scored samples; its status is {header.get('status')}")
    arguments = {"task": spec.get("task_args") or {}, "generate": spec.get("model_generate_config") or {}}
    settings = flattened({"model": spec.get("model"), **arguments, "solver": spec.get("solver") or ""})
    seed = (spec.get("model_generate_config") or {}).get("seed")
    return Run(
        name=file.stem,
        source=str(file),
        task=str(spec.get("task", "")),
        seed=seed if isinstance(seed, int) else None,
        finals={TEST: sum(scores.values()) / len(scores)},
        items=scores,
        cost=_cost(header.get("stats") or {}),
        lacks=lacks,
        version=str((spec.get("packages") or {}).get("inspect_ai", "")),
        commit=str((spec.get("revision") or {}).get("commit", "")),
        settings=without_seed(settings),
    )


def _scores(samples: Sequence[Mapping[str, Any]], scorer: str | None, file: Path) -> dict[str, float]:
    names = list(dict.fromkeys(name for sample in samples for name in sample.get("scores") or {}))
    if scorer is not None and scorer not in names:
        raise UsageError(f"{file} has no scorer {scorer!r}; there are {', '.join(names) or 'none'}")
    if scorer is None and len(names) > 1:
        raise UsageError(f"{file} has {len(names)} scorers: name one with --metric, {', '.join(names)}")
    attempts: dict[str, list[float]] = {}
    for sample in samples:
        score = (sample.get("scores") or {}).get(scorer or (names[0] if names else ""))
        if score is not None:
            value = _number(score.get("value"), file, sample.get("id"))
            if value is not None:
                attempts.setdefault(str(sample["id"]), []).append(value)
    return {item: sum(found) / len(found) for item, found in attempts.items()}


def _number(value: Any, file: Path, item: Any) -> float | None:
    if isinstance(value, bool | int | float):
        if value != value:
            raise UsageError(f"{file}: the score of sample {item} is NaN")
        return float(value)
    if isinstance(value, str) and value in _MARKS:
        return _MARKS[value]
    if isinstance(value, Mapping):
        raise UsageError(
            f"{file}: sample {item} has several values ({', '.join(value)}); a comparison needs one number"
        )
    return None


def _cost(stats: Mapping[str, Any]) -> Cost:
    used = (stats.get("model_usage") or {}).values()
    tokens = sum(row.get("total_tokens") or 0 for row in used)
    return Cost(tokens=tokens if used else None)


def _from_json(file: Path) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    found = load(file)
    return found, (found.get("samples") if isinstance(found, Mapping) else None) or []


def _is_log(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace") as opened:
        start = opened.read(_START)
    return '"eval"' in start and '"status"' in start


def _from_zip(file: Path) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    if file.stat().st_size == 0:
        raise UsageError(f"{file} is empty")
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            if "header.json" not in names or "summaries.json" not in names:
                raise UsageError(f"{file} is not finished: it has no header.json; `inspect eval-retry` completes it")
            return _member(archive, "header.json", file), _member(archive, "summaries.json", file)
    except (zipfile.BadZipFile, zlib.error, EOFError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is cut short or damaged, or no log of Inspect: {error}") from error


def _member(archive: zipfile.ZipFile, name: str, file: Path) -> Any:
    try:
        return json.loads(_unpacked(archive, name, file))
    except RecursionError:
        raise UsageError(f"{file}: {name} is nested too deeply") from None


def _unpacked(archive: zipfile.ZipFile, name: str, file: Path) -> bytes:
    """A part of the log. Whatever its head says of its size, no more is unpacked than can be worked with."""
    info = archive.getinfo(name)
    if info.compress_type != _ZSTANDARD:
        with archive.open(name) as part:
            return _bounded(part.read(LARGEST + 1), name, file)
    with file.open("rb") as opened:
        opened.seek(info.header_offset)
        head = opened.read(_LOCAL_HEAD)
        name_size, extra_size = struct.unpack("<HH", head[26:30])
        opened.seek(info.header_offset + _LOCAL_HEAD + name_size + extra_size)
        unpack, wrong = _unpacker(file)
        try:
            return _bounded(unpack(opened.read(info.compress_size), LARGEST + 1), name, file)
        except wrong as error:
            raise UsageError(f"{file} is cut short or damaged: {name} can't be unpacked") from error


def _bounded(data: bytes, name: str, file: Path) -> bytes:
    if len(data) > LARGEST:
        raise UsageError(
            f"{file}: {name} has more than {LARGEST >> 20:,} MiB when it is unpacked; no log of Inspect does"
        )
    return data


def _unpacker(file: Path) -> tuple[Callable[[bytes, int], bytes], type[Exception]]:
    """Who unpacks the first bytes of something in Zstandard here, and what it raises for what is damaged."""
    for package in ("compression.zstd", "backports.zstd"):
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        return module.ZstdDecompressor().decompress, module.ZstdError
    try:
        of_old = importlib.import_module("zstandard")
    except ImportError:
        program = shutil.which("zstd")
        if program is None:
            raise UsageError(
                f"{file} is compressed with Zstandard, which this Python can't read: `pip install zstandard`, or "
                "`inspect log convert --to json`"
            ) from None
        found = program
        return lambda data, most: _unpacked_by(found, data, most), subprocess.CalledProcessError
    return lambda data, most: bytes(of_old.ZstdDecompressor().stream_reader(data).read(most)), of_old.ZstdError


def _unpacked_by(program: str, data: bytes, most: int) -> bytes:
    """What the program `zstd` makes of it, through files: both ends of it at once would need threads."""
    with tempfile.TemporaryFile() as packed:
        packed.write(data)
        packed.seek(0)
        with subprocess.Popen(
            [program, "-dcq"], stdin=packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            unpacked = process.stdout.read(most)
            if len(unpacked) == most:
                process.kill()
                return unpacked
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, program)
        return unpacked
