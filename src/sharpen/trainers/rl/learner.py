"""One training, alive: it learns stretch by stretch, in a thread of its own, and after each hands over the policy with its
files.

A stretch begins where the policy it is given ended: in the live model if that is the one in memory, else in a fresh model
brought there from the policy's files. Either way the same numbers come out, down to the last bit: whatever a training
depends on is in the files, and the generators are put back before each stretch, since evaluations lie between.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.engine.shelf import RESUME_ONLY
from sharpen.engine.stretches import Grown
from sharpen.tasks.gym import about
from sharpen.tasks.gym import policy as policies
from sharpen.trainers.rl import building, state
from sharpen.trainers.rl.environments import Grounds, Make, Seeds, prepare
from sharpen.trainers.rl.events import Diverged
from sharpen.trainers.rl.notes import Notes
from sharpen.trainers.rl.recipe import Recipe

T = TypeVar("T")


@dataclass(frozen=True)
class Watch:
    """Who watches a training: told the step, and asked at every one whether to go on; `check` raises where not."""

    progress: Callable[[int], None] = lambda step: None
    check: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Playground:
    """Where a training plays: how an environment is made, the seed of each episode, and settings that are not its own."""

    make: Make
    seeds: Seeds
    settings: Mapping[str, Json] = field(default_factory=dict)


@dataclass
class _Live:
    model: BaseAlgorithm
    grounds: Grounds
    network: about.Architecture
    digest: str = ""
    generators: Mapping[str, Any] = field(default_factory=dict)
    remarks: dict[str, Json] = field(default_factory=dict)


class Learner:
    """Trains after a recipe. `desk` is a folder of its own, where files lie until they are taken."""

    def __init__(self, recipe: Recipe, place: Playground, seed: int, desk: Path, watch: Watch) -> None:
        self._recipe, self._place, self._seed, self._desk = recipe, place, seed, desk
        self._watch = watch
        self._live: _Live | None = None
        self._left = False

    async def begin(self) -> Grown:
        """The policy before anything is learned."""
        return await self._in_thread(self._begin)

    async def go_on(self, policy: Candidate, mark: int) -> Grown:
        """The policy trained up to step `mark`, where an update ends."""
        return await self._in_thread(lambda: self._go_on(policy, mark))

    def close(self) -> None:
        """Let go of the environments."""
        live, self._live = self._live, None
        if live is not None:
            live.grounds.seen.close()

    def _begin(self) -> Grown:
        self._live = live = self._fresh()
        said = policies.describe(live.model.policy, live.network)
        hyperparameters = {**building.defaults(self._recipe.algorithm), **self._recipe.told()}
        return self._grown(
            live,
            {
                "parameters": said.parameters,
                "trained_parameters": said.trained_parameters,
                "policy": live.network.policy,
                "hyperparameters": hyperparameters,
            },
        )

    def _go_on(self, policy: Candidate, mark: int) -> Grown:
        live, self._live = self._live, None  # a stretch that breaks off leaves nothing to go on with
        if live is None or live.digest != policy.digest:
            live = self._brought_to(policy)
        state.put_generators(live.model, live.generators)
        try:
            live.model.learn(
                mark - live.model.num_timesteps,
                _Watching(self._watch.progress, self._check),
                log_interval=None,
                reset_num_timesteps=False,
            )
        except (ValueError, RuntimeError):  # what torch says of networks that give no numbers, if it says anything
            if building.is_finite(live.model):
                raise
        if not building.is_finite(live.model):
            raise Diverged(f"the weights stopped being numbers before step {mark}")
        assert live.model.num_timesteps == mark
        self._live = live
        notes = live.model.logger
        assert isinstance(notes, Notes)
        metrics, live.remarks = {**notes.take(live.grounds.ended()), **live.remarks}, {}
        return self._grown(live, metrics)

    def _fresh(self) -> _Live:
        """A model with fresh weights, and its environments."""
        recipe = self._recipe
        grounds = prepare(
            self._place.make,
            self._place.seeds,
            recipe.n_envs,
            normalize=recipe.normalize,
            gamma=building.discount(recipe),
        )
        network = building.architecture(recipe, grounds.seen.observation_space, self._place.settings)
        model = building.build(recipe, network, grounds, self._seed)
        for optimizer in _optimizers(model):
            optimizer.register_step_pre_hook(lambda *_: self._check())
        return _Live(model, grounds, network)

    def _brought_to(self, policy: Candidate) -> _Live:
        """A fresh model, brought to where the policy's training was."""
        weights, saved, replay = _held(policy)
        live = self._fresh()
        live.model.policy.load_state_dict(weights)
        state.restore(live.model, live.grounds, saved)
        live.digest, live.generators = policy.digest, saved["generators"]
        if replay is not None:
            state.restore_replay(live.model, replay)
        elif getattr(live.model, "replay_buffer", None) is not None and live.model.num_timesteps:
            live.remarks["replay_buffer_lost"] = True
        return live

    def _grown(self, live: _Live, metrics: Mapping[str, Json]) -> Grown:
        """Save everything on the desk, and hand it over."""
        shutil.rmtree(self._desk, ignore_errors=True)  # never written to again: what lay here may have other names now
        self._desk.mkdir(parents=True)
        model = live.model
        kept = policies.keep(self._desk, model.policy, live.network, _normalisation(model))
        live.digest = kept.digest
        taken = state.capture(model, live.grounds)
        live.generators = taken["generators"]
        files = {**kept.files, about.STATE: self._desk / about.STATE}
        policies.write_tensors(files[about.STATE], taken)
        replay = state.capture_replay(model) if self._recipe.keep_replay_buffer else None
        if replay is not None:
            files[RESUME_ONLY] = self._desk / RESUME_ONLY
            policies.write_tensors(files[RESUME_ONLY], replay)
        return Grown(Candidate(kept.parts, files), model.num_timesteps, dict(metrics))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def hushed() -> T:
            with _quietly():
                return work()

        try:
            return await asyncio.to_thread(hushed)
        except asyncio.CancelledError:
            self._left = True
            raise

    def _check(self) -> None:
        if self._left:
            raise asyncio.CancelledError
        self._watch.check()


class _Watching(BaseCallback):  # type: ignore[misc]
    """Called at every step of the environments."""

    def __init__(self, progress: Callable[[int], None], check: Callable[[], None]) -> None:
        super().__init__()
        self._progress, self._check = progress, check

    def _on_step(self) -> bool:
        self._progress(self.model.num_timesteps)
        self._check()
        return True


def _held(policy: Candidate) -> tuple[dict[str, torch.Tensor], state.State, state.State | None]:
    """The weights, the state and the replay buffer, if there is one, that a checkpoint holds."""
    said, path, replay = about.read(policy), policy.files.get(about.STATE), policy.files.get(RESUME_ONLY)
    assert said is not None, "only a policy that was begun is gone on with"
    try:
        weights, _ = policies.read_weights(policy, said)
        if path is None or not path.is_file():
            raise UsageError(f"{policy.files[about.WEIGHTS].parent} has no {about.STATE}")
        buffer = policies.read_tensors(replay) if replay is not None and replay.is_file() else None
        return weights, policies.read_tensors(path), buffer
    except UsageError as error:
        raise UsageError(
            f"{error}: training can't go on from this checkpoint; remove its folder, and it goes on from the one before"
        ) from error


def _normalisation(model: BaseAlgorithm) -> policies.Normalisation | None:
    running = model.get_vec_normalize_env()
    if running is None:
        return None
    found = running.obs_rms
    if isinstance(found, dict):
        mean: Any = {name: one.mean for name, one in found.items()}
        var: Any = {name: one.var for name, one in found.items()}
    else:
        mean, var = found.mean, found.var
    return policies.Normalisation(mean, var, float(running.clip_obs), float(running.epsilon))


def _optimizers(model: BaseAlgorithm) -> list[torch.optim.Optimizer]:
    holders = (model.policy, getattr(model, "actor", None), getattr(model, "critic", None))
    found = [getattr(holder, "optimizer", None) for holder in holders]
    return [one for one in found if isinstance(one, torch.optim.Optimizer)]


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """One thread for torch: sums in another order are other sums, and the machine is shared with other jobs."""
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
