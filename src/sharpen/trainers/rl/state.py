"""Everything that going on with a training needs beside the policy's weights: taken from a live model, and put back.

Optimizers, counters, the last observations, running statistics, the noise of actions, the place of every environment, and
the generators of random numbers that the libraries draw from. What is written are tensors and plain values, so that reading
it runs no code. The replay buffer is apart: it is large, and only the newest checkpoint has it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise, VectorizedActionNoise
from stable_baselines3.common.running_mean_std import RunningMeanStd

from sharpen.trainers.rl.environments import Grounds, Place

State: TypeAlias = dict[str, Any]

_COUNTERS = (
    "num_timesteps",
    "_episode_num",
    "_n_updates",
    "_n_calls",
    "exploration_rate",
    "_current_progress_remaining",
)
_LAST = ("_last_obs", "_last_original_obs", "_last_episode_starts")
_BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def capture(model: BaseAlgorithm, grounds: Grounds) -> State:
    """The state of a training, as `torch.save` takes it."""
    state_dicts, variables = model._get_torch_save_params()
    return {
        "optimizers": {name: attrgetter(name)(model).state_dict() for name in state_dicts if name != "policy"},
        "variables": {name: attrgetter(name)(model).detach().clone() for name in variables},
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "last": _tensors({name: getattr(model, name) for name in _LAST}),
        "statistics": _tensors(_statistics(model)),
        "noise": _tensors([noise.noise_prev for noise in _noises(model)]),
        "places": [_place(env.place()) for env in grounds.each],
        "generators": generators(model),
    }


def restore(model: BaseAlgorithm, grounds: Grounds, state: Mapping[str, Any]) -> None:
    """Bring a fresh model, whose weights have been put back, to where a training was."""
    for name, optimizer in state["optimizers"].items():
        attrgetter(name)(model).load_state_dict(optimizer)
    for name, tensor in state["variables"].items():
        attrgetter(name)(model).data.copy_(tensor)
    for name, value in state["counters"].items():
        setattr(model, name, value)
    for name, value in _arrays(state["last"]).items():
        setattr(model, name, value)
    _put_statistics(model, _arrays(state["statistics"]))
    for noise, previous in zip(_noises(model), _arrays(state["noise"]), strict=True):
        noise.noise_prev = previous
    for env, place in zip(grounds.each, _arrays(state["places"]), strict=True):
        env.go_to(Place(place["episode"], tuple(place["actions"]), place["observation"]))
    put_generators(model, state["generators"])


def capture_replay(model: BaseAlgorithm) -> State | None:
    """What the replay buffer holds; None for an algorithm without one."""
    buffer: Any = getattr(model, "replay_buffer", None)
    if buffer is None:
        return None
    held = {name: _cut(getattr(buffer, name), buffer.size()) for name in _BUFFER if hasattr(buffer, name)}
    return {"pos": buffer.pos, "full": buffer.full, "held": _tensors(held)}


def restore_replay(model: BaseAlgorithm, saved: Mapping[str, Any]) -> None:
    buffer: Any = vars(model)["replay_buffer"]
    buffer.pos, buffer.full = saved["pos"], saved["full"]
    for name, values in _arrays(saved["held"]).items():
        _fill(getattr(buffer, name), values)


def generators(model: BaseAlgorithm) -> State:
    """Where the generators are that a training draws from: those of python, numpy and torch, and that of the actions."""
    name, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    assert name == "MT19937" and isinstance(keys, np.ndarray)
    found = {
        "python": random.getstate(),
        "numpy": {
            "keys": torch.from_numpy(keys.astype(np.int64)),
            "rest": (int(position), int(has_gauss), float(gauss)),
        },
        "torch": torch.get_rng_state(),
        "actions": model.action_space.np_random.bit_generator.state,
    }
    if model.device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(model.device)
    return found


def put_generators(model: BaseAlgorithm, saved: Mapping[str, Any]) -> None:
    random.setstate(saved["python"])
    keys = saved["numpy"]["keys"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", keys, *saved["numpy"]["rest"]))
    torch.set_rng_state(saved["torch"])
    model.action_space.np_random.bit_generator.state = saved["actions"]
    if "cuda" in saved and model.device.type == "cuda":
        torch.cuda.set_rng_state(saved["cuda"], model.device)


def _noises(model: BaseAlgorithm) -> Sequence[OrnsteinUhlenbeckActionNoise]:
    """The noise that remembers what it was last; other noise is drawn anew every time."""
    noise = model.action_noise
    each = noise.noises if isinstance(noise, VectorizedActionNoise) else [noise]
    return [one for one in each if isinstance(one, OrnsteinUhlenbeckActionNoise)]


def _statistics(model: BaseAlgorithm) -> State | None:
    running = model.get_vec_normalize_env()
    if running is None:
        return None
    observations = running.obs_rms
    return {
        "observations": {name: _moments(one) for name, one in observations.items()}
        if isinstance(observations, dict)
        else _moments(observations),
        "returns": _moments(running.ret_rms),
        "running": running.returns,
        "seen": getattr(running, "old_obs", None),
    }


def _put_statistics(model: BaseAlgorithm, saved: Any) -> None:
    running = model.get_vec_normalize_env()
    if running is None:
        return
    if isinstance(running.obs_rms, dict):
        for name, one in running.obs_rms.items():
            _put_moments(one, saved["observations"][name])
    else:
        _put_moments(running.obs_rms, saved["observations"])
    _put_moments(running.ret_rms, saved["returns"])
    running.returns = saved["running"]
    if saved["seen"] is not None:
        running.old_obs = saved["seen"]


def _moments(running: RunningMeanStd) -> State:
    return {"mean": np.asarray(running.mean), "var": np.asarray(running.var), "count": float(running.count)}


def _put_moments(running: RunningMeanStd, saved: Mapping[str, Any]) -> None:
    running.mean, running.var, running.count = saved["mean"], saved["var"], saved["count"]


def _place(place: Place) -> State:
    actions: Any = torch.from_numpy(np.stack(place.actions)) if place.actions else []
    return {"episode": place.episode, "actions": actions, "observation": _tensors(place.observation)}


def _cut(values: Any, size: int) -> Any:
    return {name: _cut(one, size) for name, one in values.items()} if isinstance(values, dict) else values[:size]


def _fill(buffer: Any, values: Any) -> None:
    if isinstance(buffer, dict):
        for name, one in values.items():
            _fill(buffer[name], one)
    else:
        buffer[: len(values)] = values


def _tensors(value: Any) -> Any:
    """The same with tensors in place of arrays."""
    if isinstance(value, np.ndarray | np.generic):
        return torch.from_numpy(np.array(value))
    if isinstance(value, dict):
        return {name: _tensors(one) for name, one in value.items()}
    return [_tensors(one) for one in value] if isinstance(value, list) else value


def _arrays(value: Any) -> Any:
    """The same with arrays in place of tensors."""
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {name: _arrays(one) for name, one in value.items()}
    return [_arrays(one) for one in value] if isinstance(value, list) else value
