"""Gates are found by name, with settings that are checked."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from sharpen.core.errors import UsageError
from sharpen.gates import registry
from sharpen.gates.sequential import Sequential
from sharpen.gates.strict import Strict


def test_the_default_is_sequential() -> None:
    assert registry.DEFAULT == registry.names()[0] == "sequential"
    assert registry.get("sequential") == Sequential()


def test_settings_reach_the_gate() -> None:
    gate = registry.get("sequential", {"alpha": 0.01, "alpha_spending": "run"})
    assert gate == Sequential(alpha=0.01, alpha_spending="run")


def test_an_unknown_gate_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown gate 'pared'.*did you mean 'paired'"):
        registry.get("pared")


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"gate 'paired' has no setting 'alhpa'.*did you mean 'alpha'"):
        registry.get("paired", {"alhpa": 0.1})


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("paired", {"alpha": 0.0}, "alpha must lie between 0 and 1"),
        ("paired", {"alpha": "much"}, "alpha must be a number"),
        ("sequential", {"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ("sequential", {"alpha": None}, "alpha must be a number"),
        ("sequential", {"passes": 0.5}, "passes must lie in 1..100"),
        ("sequential", {"alpha_spending": "all"}, "alpha_spending is 'decision' or 'run'"),
        ("sequential", {"worthwhile": 1.5}, "worthwhile must lie in 0..1"),
        ("sequential", {"block": -1}, "block must be 0"),
        ("sequential", {"block": 2.5}, "block must be a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(name: str, params: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        registry.get(name, params)


def test_known_gates_show_their_settings() -> None:
    known = {gate.name: gate for gate in registry.known()}
    assert [setting.name for setting in known["paired"].params] == ["alpha"]
    assert known["sequential"].params[0].default == 0.05
    assert all(gate.description for gate in known.values())


def test_a_package_can_add_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("lenient", "sharpen.gates.strict:Strict", registry.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == registry.GROUP else [])
    assert registry.names()[-1] == "lenient"
    assert registry.get("lenient") == Strict()
