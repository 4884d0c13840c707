"""How an environment is made: for training, for evaluation and for the camera, always in the same way.

`Making` is what a task's settings say. `make` gives a gymnasium environment in the form policies take: images with their
channels first, observations of mixed kinds flattened, Atari frames prepared (`atari.py`), and an end to every episode. What
differs between training and evaluation is only what Atari training does (see `Atari`); seeds are the caller's.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sharpen.core.digest import Json
from sharpen.core.errors import MissingRequirement, UsageError, nearest
from sharpen.core.redact import redact_json
from sharpen.tasks.gym import INSTALL, INSTALL_ATARI

if TYPE_CHECKING:
    from gymnasium import Env, Space
    from gymnasium.envs.registration import EnvSpec

LONGEST = 10_000
"""Steps after which an episode is cut off where the environment itself sets no limit: some never end."""


class Lacking(UsageError):
    """A package that an environment is made of is not here."""


@dataclass(frozen=True)
class Atari:
    """How an Atari screen becomes an observation. The last two are for training alone: an episode ends with a life, and
    only the sign of a reward counts. Sticky actions and the cap on frames are as the environment's id says."""

    frame_skip: int = 4
    size: int = 84
    grayscale: bool = True
    stack: int = 4
    noop: int = 30
    terminal_on_life_loss: bool = True
    clip_reward: bool = True

    def __post_init__(self) -> None:
        for option, least in (("frame_skip", 1), ("size", 1), ("stack", 1), ("noop", 0)):
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UsageError(f"atari.{option} must be a whole number of {least} or more, got {value!r}")
        for option in ("grayscale", "terminal_on_life_loss", "clip_reward"):
            if not isinstance(getattr(self, option), bool):
                raise UsageError(f"atari.{option} must be true or false, got {getattr(self, option)!r}")


@dataclass(frozen=True)
class Making:
    """An environment and how it is made. `max_steps` None: its own limit. `atari` None: screens as they are."""

    environment: str
    kwargs: Mapping[str, Json] = field(default_factory=dict)
    max_steps: int | None = None
    atari: Atari | None = None

    @cached_property
    def spec(self) -> EnvSpec:
        return find(self.environment)

    @cached_property
    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        env = make(self, training=False)
        env.close()
        return env.observation_space, env.action_space

    @property
    def limit(self) -> int | None:
        """Steps after which an episode is cut off; None where the emulator counts frames itself."""
        if self.max_steps is not None:
            return self.max_steps
        own: int | None = self.spec.max_episode_steps
        return LONGEST if own is None and not is_atari(self.spec) else own

    def settings(self) -> dict[str, Json]:
        """What differs from the defaults, as it is written in a configuration. It goes with a policy into files, so that
        secrets are taken out."""
        said: dict[str, Json] = {}
        if self.kwargs:
            said["kwargs"] = redact_json(self.kwargs)
        if self.max_steps is not None:
            said["max_steps"] = self.max_steps
        usual = Atari() if is_atari(self.spec) else None
        if self.atari != usual:
            said["atari"] = False if self.atari is None else asdict(self.atari)
        return said

    @property
    def protocol(self) -> str:
        """How a return is measured, in words."""
        if self.atari is None:
            cut = "no limit of steps" if self.limit is None else f"at most {self.limit:,} steps"
            return f"{cut}, deterministic actions, return undiscounted"
        told = {**self.spec.kwargs, **self.kwargs}
        sticky = told.get("repeat_action_probability", 0.25)
        frames = told.get("max_num_frames_per_episode")
        parts = [
            f"sticky actions {sticky:g}" if sticky else "no sticky actions",
            f"frame skip {self.atari.frame_skip}",
            f"up to {self.atari.noop} no-op actions at the start" if self.atari.noop else "no no-op actions",
            f"at most {frames:,} frames" if frames else "no limit of frames",
            "full action set" if told.get("full_action_space") else "minimal action set",
            "whole games, unclipped rewards, deterministic actions",
        ]
        if self.max_steps is not None:
            parts.insert(4, f"at most {self.max_steps:,} steps")
        return ", ".join(parts)


def from_settings(environment: str, *, kwargs: Json = None, max_steps: Json = None, atari: Json = None) -> Making:
    """What a task's settings say; `atari` is a mapping of `Atari`'s options, or false for none of it."""
    spec = find(environment)
    given = {} if kwargs is None else kwargs
    if not isinstance(given, Mapping):
        raise UsageError(f"{environment}: kwargs must be a mapping, as gymnasium.make takes it, got {given!r}")
    if "render_mode" in given or "max_episode_steps" in given:
        raise UsageError(f"{environment}: kwargs can't hold render_mode or max_episode_steps; there is max_steps")
    if max_steps is not None and (isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1):
        raise UsageError(f"{environment}: max_steps must be a whole number of 1 or more, got {max_steps!r}")
    return Making(environment, given, max_steps, _atari(environment, spec, given, atari))


def _atari(environment: str, spec: EnvSpec, kwargs: Mapping[str, Json], given: Json) -> Atari | None:
    if not is_atari(spec):
        if given:
            raise UsageError(f"{environment} is no Atari environment: it takes no setting 'atari'")
        return None
    if given is False:
        return None
    if kwargs.get("obs_type", "rgb") != "rgb" or kwargs.get("continuous") or kwargs.get("sound_obs"):
        raise UsageError(
            f"{environment}: screens are prepared for policies from 'rgb' with discrete actions; to have it as the "
            "emulator gives it, say atari: false"
        )
    if "frameskip" in kwargs:
        raise UsageError(f"{environment}: the frame skip is atari.frame_skip, not kwargs.frameskip")
    if given is None or given is True:
        return Atari()
    if not isinstance(given, Mapping):
        raise UsageError(f"{environment}: atari must be a mapping of options or false, got {given!r}")
    options = tuple(option.name for option in fields(Atari))
    for name in given:
        if name not in options:
            raise UsageError(f"unknown option atari.{name}{nearest(name, options)}; there are {', '.join(options)}")
    return Atari(**given)


def need_package() -> None:
    if importlib.util.find_spec("gymnasium") is None:
        raise MissingRequirement(f"environments need gymnasium: {INSTALL}")


def find(environment: str) -> EnvSpec:
    """What gymnasium knows of an id, after importing the module named before a colon; an error says why it can't be had."""
    need_package()
    import gymnasium
    from gymnasium import error as errors

    if environment.startswith("ALE/") or environment not in gymnasium.registry:
        know_atari()
    if environment.startswith("ALE/") and importlib.util.find_spec("ale_py") is None:
        raise MissingRequirement(f"{environment} needs the Atari emulator: {INSTALL_ATARI}")
    try:
        return gymnasium.spec(environment) if ":" not in environment else _imported(environment)
    except (errors.NameNotFound, errors.NamespaceNotFound) as error:
        near = nearest(environment, ids())
        raise UsageError(
            f"unknown environment {environment!r}{near or f': {error}'}; `sharpen list tasks --pattern '*-v*'` shows all"
        ) from error
    except errors.Error as error:
        raise UsageError(f"environment {environment!r}: {error}") from error


def _imported(environment: str) -> EnvSpec:
    import gymnasium

    module, _, name = environment.partition(":")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"environment {environment!r}: the module {module!r} can't be imported: {error}; is its folder on PYTHONPATH?"
        ) from error
    return gymnasium.spec(name)


def know_atari() -> None:
    """Have the Atari environments among those that gymnasium knows, where they are installed."""
    import gymnasium

    if importlib.util.find_spec("ale_py") is None:
        return
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)


def ids() -> list[str]:
    """Every id that is known here."""
    need_package()
    import gymnasium

    know_atari()
    return sorted(gymnasium.registry)


def is_atari(spec: EnvSpec) -> bool:
    return str(spec.entry_point).startswith("ale_py")


def make(making: Making, *, training: bool, render_mode: str | None = None) -> Env[Any, Any]:
    """The environment, not reset yet. In training, an Atari episode ends with a life; see `atari.Frames` on going on."""
    import gymnasium
    from gymnasium import error as errors

    from sharpen.tasks.gym import shapes

    spec = making.spec
    kwargs = dict(making.kwargs)
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    if making.atari is not None:
        kwargs |= {"frameskip": 1, "obs_type": "grayscale" if making.atari.grayscale else "rgb"}
    limit = making.limit if making.atari is None else None
    try:
        env = gymnasium.make(spec, max_episode_steps=limit, disable_env_checker=True, **kwargs)
    except (errors.DependencyNotInstalled, ImportError) as error:
        raise Lacking(f"what {making.environment} is made with: {error}") from error
    except (errors.Error, TypeError, AssertionError, ValueError) as error:
        raise UsageError(f"environment {making.environment!r} can't be made: {error}") from error
    if making.atari is not None:
        from sharpen.tasks.gym.atari import Frames

        env = Frames(env, making.atari, training=training)
        if making.limit is not None:
            env = gymnasium.wrappers.TimeLimit(env, making.limit)
    return shapes.suited(env, making.environment)


def spaces(making: Making) -> tuple[Space[Any], Space[Any]]:
    """What a policy sees and what it may do."""
    return making.spaces
