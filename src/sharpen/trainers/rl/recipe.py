"""What a training of a policy comes to, before anything is played: settings given, preset and defaults put together. Pure.

A `Recipe` says how the environments, the network and the algorithm are to be made, and at which steps the training pauses
to be saved and evaluated. It can pause only between two updates, so each mark is the first such step at or past a multiple
of `eval_every`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.trainers.rl import presets
from sharpen.trainers.rl.params import AUTO, OWN, PolicyParams

_STEPS = 100_000
_EVALUATIONS = 20
_NETWORK = ("net_arch", "log_std_init", "ortho_init", "use_expln")


@dataclass(frozen=True)
class Algorithm:
    """What must be known of an algorithm before it is loaded: its name, the setting that says how many steps each
    environment plays between two updates, what that is by default, and which actions it can learn; None: any."""

    name: str
    between_updates: str
    steps: int
    actions: Literal["discrete", "continuous"] | None = None


@dataclass(frozen=True)
class Recipe:
    """How to train. `settings` go to the algorithm under their names, `network` to its policy, as JSON."""

    algorithm: str
    actions: Literal["discrete", "continuous"] | None
    environment: str
    preset: str
    total_steps: int
    eval_every: int
    round: int
    """Steps from one update to the next, all environments together."""
    n_envs: int
    policy: str
    settings: Mapping[str, Json]
    network: Mapping[str, Json]
    noise: tuple[str, float] | None = None
    normalize: bool = False
    device: str = "cpu"
    keep_replay_buffer: bool = True
    tf_rms_prop: bool = False
    marks: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", landings(self.total_steps, self.eval_every, self.round))

    def told(self) -> dict[str, Json]:
        """As the story has it: everything that is not the algorithm's default."""
        return {
            "preset": self.preset,
            "total_steps": self.total_steps,
            "eval_every": self.eval_every,
            "n_envs": self.n_envs,
            "normalize": self.normalize,
            **self.settings,
            **self.network,
            **({} if self.noise is None else {"noise_type": self.noise[0], "noise_std": self.noise[1]}),
            **({"tf_rms_prop": True} if self.tf_rms_prop else {}),
        }


def resolve(algorithm: Algorithm, params: PolicyParams, environment: str) -> Recipe:
    """Put together what was given, the preset, and the defaults."""
    preset, published = presets.find(algorithm.name, environment, params.preset)
    given = {name: value for name, value in params.model_dump().items() if value is not None}
    values: dict[str, Json] = {**published, **given}
    settings = {name: value for name, value in values.items() if name not in OWN}
    network = {name: values[name] for name in _NETWORK if name in values}
    if "activation" in values:
        network["activation_fn"] = values["activation"]
    total, n_envs = int(values.get("total_steps", _STEPS)), int(values.get("n_envs", 1))
    return Recipe(
        algorithm=algorithm.name,
        actions=algorithm.actions,
        environment=environment,
        preset=preset,
        total_steps=total,
        eval_every=int(values.get("eval_every", max(1, total // _EVALUATIONS))),
        round=int(settings.get(algorithm.between_updates, algorithm.steps)) * n_envs,
        n_envs=n_envs,
        policy=values.get("policy", AUTO),
        settings=settings,
        network=network,
        noise=_noise(values),
        normalize=bool(values.get("normalize", False)),
        device=params.device,
        keep_replay_buffer=bool(values.get("keep_replay_buffer", True)),
        tf_rms_prop=bool(values.get("tf_rms_prop", False)),
    )


def landings(total: int, every: int, size: int) -> tuple[int, ...]:
    """The steps at which a training pauses that can pause after each `size` steps."""
    wanted = (*range(every, total, every), total)
    return tuple(dict.fromkeys(-(-mark // size) * size for mark in wanted))


def _noise(values: Mapping[str, Json]) -> tuple[str, float] | None:
    kind = values.get("noise_type", "none")
    if kind == "none" and values.get("noise_std"):
        raise UsageError("noise_std needs noise_type: normal or ornstein-uhlenbeck")
    return None if kind == "none" else (str(kind), float(values.get("noise_std", 0.1)))
