"""A policy's networks on disk and in memory: how they are built from `policy.json`, known by a digest, kept in `policy.pt`
and played with.

`keep` writes a policy and gives its candidate; `load` gives a `Player` for a candidate, checked against its digest. Names
in `policy_kwargs` (of activations, feature extractors, optimizers) become classes in `resolved`, and nowhere else. Needs
torch and stable-baselines3: import it only where a policy is at hand.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, NatureCNN

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json, canonical
from sharpen.core.errors import StorageError, UsageError, nearest
from sharpen.tasks.gym import about as text

if TYPE_CHECKING:
    from gymnasium import Space
    from stable_baselines3.common.policies import BasePolicy

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Observations: TypeAlias = "Array | dict[str, Array]"

KINDS = {"a2c": A2C, "dqn": DQN, "ppo": PPO, "sac": SAC, "td3": TD3}

_CLASSES: dict[str, dict[str, Any]] = {
    "activation_fn": {
        name: getattr(torch.nn, name) for name in ("ELU", "GELU", "LeakyReLU", "Mish", "ReLU", "SELU", "SiLU", "Tanh")
    },
    "features_extractor_class": {"flatten": FlattenExtractor, "nature_cnn": NatureCNN, "combined": CombinedExtractor},
    "optimizer_class": {name: getattr(torch.optim, name) for name in ("Adam", "AdamW", "RMSprop", "SGD")},
}
_CRITICS = ("value_net.", "mlp_extractor.value_net.", "vf_features_extractor.", "critic.")
_UNREADABLE = (
    RuntimeError, pickle.UnpicklingError, EOFError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError,
    AssertionError, struct.error, OSError,
)  # fmt: skip
"""What torch may raise over a file that is none of its own: it takes any bytes for a pickle."""
_KEPT = 4
"""Players that are held in memory: those of an arm and its rival, at an evaluation of both."""
_players: OrderedDict[str, Player] = OrderedDict()


@dataclass(frozen=True)
class Normalisation:
    """Running statistics that observations are put through before a policy sees them: by name where they are a mapping,
    and names that are not here are left as they are."""

    mean: Array | Mapping[str, Array]
    var: Array | Mapping[str, Array]
    clip: float
    epsilon: float

    def __call__(self, observations: Observations) -> Observations:
        if not isinstance(observations, dict):
            return self._scaled(observations, self.mean, self.var)
        assert isinstance(self.mean, Mapping) and isinstance(self.var, Mapping)
        done = {name: self._scaled(observations[name], self.mean[name], self.var[name]) for name in self.mean}
        return {**observations, **done}

    def _scaled(self, values: Array, mean: Any, var: Any) -> Array:
        scaled: Array = np.clip((values - mean) / np.sqrt(var + self.epsilon), -self.clip, self.clip)
        return scaled.astype(np.float32)

    def saved(self) -> dict[str, Any]:
        """As it stands in `policy.pt`: tensors and numbers only."""
        return {"mean": _tensors(self.mean), "var": _tensors(self.var), "clip": self.clip, "epsilon": self.epsilon}

    @classmethod
    def read(cls, saved: Mapping[str, Any] | None) -> Normalisation | None:
        if saved is None:
            return None
        return cls(_arrays(saved["mean"]), _arrays(saved["var"]), float(saved["clip"]), float(saved["epsilon"]))


class Player:
    """A policy that acts, always with the action it holds best."""

    def __init__(self, policy: BasePolicy, normalisation: Normalisation | None) -> None:
        self._policy = policy
        self._normalise = normalisation

    def act(self, observations: Observations) -> Array:
        """An action for each of a batch of observations."""
        seen = observations if self._normalise is None else self._normalise(observations)
        actions: Array = self._policy.predict(seen, deterministic=True)[0]
        return actions


def resolved(policy_kwargs: Mapping[str, Json]) -> dict[str, Any]:
    """`policy_kwargs` with a class in place of each name of one, as stable-baselines3 takes them."""
    found: dict[str, Any] = dict(policy_kwargs)
    for option, classes in _CLASSES.items():
        if option not in found:
            continue
        by_name = {name.casefold(): known for name, known in classes.items()}
        given = str(found[option])
        if given.casefold() not in by_name:
            near = nearest(given.casefold(), tuple(by_name))
            raise UsageError(f"unknown {option} {given!r}{near}; there are {', '.join(classes)}")
        found[option] = by_name[given.casefold()]
    return found


def build(
    architecture: text.Architecture, observations: Space[Any], actions: Space[Any], *, to_fill: bool = False
) -> BasePolicy:
    """A policy of this architecture with fresh weights, or with just any where they are `to_fill` at once. The global
    generator of torch is left as it was."""
    kind = KINDS[architecture.algorithm].policy_aliases[architecture.policy]
    arguments = resolved(architecture.policy_kwargs)
    if to_fill and architecture.algorithm in ("a2c", "ppo"):
        arguments["ortho_init"] = False  # for a network that sees images, this is seconds of work for nothing
    with torch.random.fork_rng(devices=[]):
        try:
            return kind(observations, actions, _no_learning, **arguments)
        except (TypeError, ValueError, AssertionError, RuntimeError) as error:
            raise UsageError(
                f"{architecture.algorithm} has no {architecture.policy} with {canonical(dict(architecture.policy_kwargs))} "
                f"for {architecture.environment}: {str(error).partition(chr(10))[0]}"
            ) from error


def weights_digest(state_dict: Mapping[str, torch.Tensor], normalisation: Normalisation | None) -> str:
    """The SHA-256 of all tensors by name, kind, shape and bytes, and of the normalisation."""
    found = hashlib.sha256()
    named = {f"weights/{name}": tensor for name, tensor in state_dict.items()}
    if normalisation is not None:
        for name, value in normalisation.saved().items():
            for key, tensor in value.items() if isinstance(value, dict) else [("", value)]:
                named[f"normalisation/{name}/{key}"] = torch.as_tensor(tensor, dtype=torch.float64)
    for name in sorted(named):
        tensor = named[name].detach().cpu().contiguous()
        found.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def describe(
    policy: BasePolicy, architecture: text.Architecture, normalisation: Normalisation | None = None
) -> text.About:
    """What `policy.json` says of a policy as it is now."""
    trained = {name: p.numel() for name, p in policy.named_parameters() if "_target." not in name}
    acting = sum(count for name, count in trained.items() if not name.startswith(_CRITICS))
    return text.About(architecture, acting, sum(trained.values()), weights_digest(policy.state_dict(), normalisation))


def keep(
    folder: Path, policy: BasePolicy, architecture: text.Architecture, normalisation: Normalisation | None = None
) -> Candidate:
    """Write `policy.pt` into `folder` and give the candidate; further files go in with `Candidate(parts, files=...)`."""
    if normalisation is not None and is_image_space(policy.observation_space, check_channels=False):
        raise UsageError(f"{architecture.environment}: images are scaled by the policy itself; do not normalise them")
    said = describe(policy, architecture, normalisation)
    weights = {name: tensor.detach().cpu() for name, tensor in policy.state_dict().items()}
    saved = None if normalisation is None else normalisation.saved()
    write_tensors(folder / text.WEIGHTS, {"state_dict": weights, "normalisation": saved})
    return Candidate({text.DESCRIPTION: said.text()}, files={text.WEIGHTS: folder / text.WEIGHTS})


def load(candidate: Candidate, environment: str, observations: Space[Any], actions: Space[Any]) -> Player:
    """The player a candidate describes, for an environment of these spaces. The last few are held in memory."""
    if (held := _players.get(candidate.digest)) is not None:
        _players.move_to_end(candidate.digest)
        return held
    said = text.read(candidate)
    if said is None:
        raise UsageError(f"the policy for {environment} is untrained: it has no weights to load")
    if said.architecture.environment != environment:
        raise UsageError(f"this policy was trained for {said.architecture.environment}; it cannot play {environment}")
    state_dict, normalisation = read_weights(candidate, said)
    policy = build(said.architecture, observations, actions, to_fill=True)
    try:
        policy.load_state_dict(state_dict)
    except RuntimeError as error:
        raise UsageError(
            f"the weights do not fit {environment} as it is here (observations {observations}, actions {actions}): "
            f"{' '.join(str(error).split())}"
        ) from error
    _players[candidate.digest] = player = Player(policy, normalisation)
    while len(_players) > _KEPT:
        _players.popitem(last=False)
    return player


def read_weights(candidate: Candidate, said: text.About) -> tuple[dict[str, torch.Tensor], Normalisation | None]:
    """What `policy.pt` holds, where that is what the candidate says of itself."""
    path = candidate.files.get(text.WEIGHTS)
    if path is None or not path.is_file():
        where = "this candidate" if path is None else path.parent
        raise UsageError(f"{where} has no {text.WEIGHTS}: the weights of the policy are missing")
    held = read_tensors(path)
    try:
        state_dict, normalisation = held["state_dict"], Normalisation.read(held["normalisation"])
        found = weights_digest(state_dict, normalisation)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is damaged, or no weights of sharpen") from error
    if found != said.weights:
        raise UsageError(f"{path} does not hold the weights that {text.DESCRIPTION} names")
    return state_dict, normalisation


def write_tensors(path: Path, held: Any) -> None:
    """Write tensors and plain values, as `read_tensors` takes them."""
    try:
        torch.save(held, path)
    except (OSError, RuntimeError) as error:  # of a full disk torch says that a position was unexpected
        raise StorageError(f"cannot write {path}: is the disk full? make room, then resume") from error


def read_tensors(path: Path) -> Any:
    """What a file beside a policy holds. Only tensors and plain values are read from it: no code of a file is ever run.
    What torch says of a file it can't read is not passed on: it advises to run the code."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        raise UsageError(f"{path} is damaged, or was not written by sharpen") from error


def _no_learning(progress_remaining: float) -> float:
    return 0.0


def _tensors(values: Array | Mapping[str, Array]) -> Any:
    if isinstance(values, Mapping):
        return {name: _tensors(value) for name, value in values.items()}
    return torch.as_tensor(np.array(values, dtype=np.float64))


def _arrays(saved: Any) -> Any:
    return {name: _arrays(value) for name, value in saved.items()} if isinstance(saved, dict) else saved.numpy()
