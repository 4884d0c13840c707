"""From names to models: the right kind for every name, plugins beside built-ins, and mistakes answered with a suggestion."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.errors import UsageError
from sharpen.models import registry
from sharpen.models.base import Model
from sharpen.models.cassette import RecordingModel
from sharpen.models.openai import OpenAIModel
from sharpen.models.registry import known, open_model
from sharpen.models.scripted import ScriptedModel


def plugin(name: str, **settings: Any) -> Model:
    """A model kind as a package would add it."""
    return ScriptedModel(name, lambda request: "from a plugin", **settings)


@pytest.fixture
def _with_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mykind", "somewhere:plugin", registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: plugin)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints((entry,)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai/gpt-5.5", OpenAIModel),
        ("http://localhost:8000/v1#some/model", OpenAIModel),
        ("https://example.org/v1#m", OpenAIModel),
        ("scripted/rules", ScriptedModel),
        ("scripted/echo?latency=0.1", ScriptedModel),
        ("record:talk.jsonl:http://localhost:8000/v1#m", RecordingModel),
        ("record:C:/a.jsonl/talk.jsonl:scripted/rules", RecordingModel),
    ],
)
def test_every_name_finds_its_kind(name: str, kind: type) -> None:
    model = open_model(name)
    assert isinstance(model, kind)
    assert isinstance(model, Model)
    assert model.name == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scripted", "expected KIND/NAME"),
        ("scripted/", "expected KIND/NAME"),
        ("", "expected KIND/NAME"),
        ("opnai/gpt-5.5", "did you mean 'openai'"),
        ("anthropic/claude", "unknown model 'anthropic/claude'.*names begin with local/, openai/, http://"),
        ("http://localhost:8000/v1", "names no model"),
        ("http://user:pass@host/v1#m", "holds a password"),
        ("http:///v1#m", "is not an endpoint"),
        ("record:talk.jsonl", "expected record:FILE.jsonl:MODEL"),
        ("record:talk.jsonl:nothing", "expected KIND/NAME"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        open_model(name)


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        open_model("http://user:hunter22@host/v1#m")
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("openai/gpt-5.5", {"timout": 3}, "has no setting 'timout' .did you mean 'timeout'"),
        ("openai/gpt-5.5", {"timeout": "soon"}, "openai/gpt-5.5: timeout: .*valid number"),
        ("openai/gpt-5.5", {"timeout": 0}, "timeout must be more than 0"),
        ("openai/gpt-5.5", {"concurrency": 5000}, "concurrency must be from 1 to 1000"),
        ("scripted/rules", {"nois": 0.1}, "did you mean 'noise'"),
        ("replay/x.jsonl", {"speed": 2}, "has no setting 'speed'"),
    ],
)
def test_wrong_settings_are_refused_with_the_reason(name: str, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        open_model(name, **settings)


def test_settings_reach_the_model_through_a_recording() -> None:
    assert open_model("record:talk.jsonl:scripted/rules", concurrency=7).concurrency == 7


@pytest.mark.usefixtures("_with_plugin")
def test_a_plugin_behaves_like_a_built_in_kind() -> None:
    assert open_model("mykind/x", concurrency=3).concurrency == 3
    assert "mykind/..." in [row.pattern for row in known()]
    with pytest.raises(UsageError, match="did you mean 'mykind'"):
        open_model("mykin/x")


def declared(name: str, *, concurrency: int = 64) -> Model:
    return ScriptedModel(name, lambda request: "from a plugin", concurrency=concurrency + 0)


@pytest.mark.parametrize("factory", [declared, plugin])
@pytest.mark.usefixtures("_with_plugin")
def test_settings_in_a_plugins_name_reach_it_with_their_types(factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntryPoint, "load", lambda self: factory)
    model = open_model("mykind/x?concurrency=3")
    assert (model.name, model.concurrency) == ("mykind/x", 3), "they used to be dropped without a word"
    with pytest.raises(UsageError, match=r"mykind/x: concurrency: .*valid integer.*got 'many'"):
        open_model("mykind/x?concurrency=many")
    with pytest.raises(UsageError, match=r"mykind/x has no setting 'concurency' .did you mean 'concurrency'"):
        open_model("mykind/x?concurency=3")


def test_the_list_says_what_is_available_and_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows = {row.pattern: row for row in known()}
    assert rows["scripted/rules"].available
    assert not rows["openai/MODEL"].available
    assert rows["openai/MODEL"].missing == "needs OPENAI_API_KEY to be set"
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert {row.pattern: row for row in known()}["openai/MODEL"].available


def test_naming_a_model_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from sharpen.models.registry import known, open_model; known(); open_model('openai/gpt-5.5');"
        "print([m for m in ('openai', 'aiohttp', 'numpy', 'xllamacpp', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
