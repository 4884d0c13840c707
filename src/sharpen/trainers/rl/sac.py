"""SAC: a random policy is learned from a replay buffer, rewarded for staying random. For continuous actions."""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.params import Coefficient, NoisyParams
from sharpen.trainers.rl.recipe import Algorithm


class SACParams(NoisyParams):
    ent_coef: Coefficient | None = Field(None, description="Worth of randomness: a number, auto, or auto_0.1.")
    target_update_interval: int | None = Field(None, ge=1, description="Gradient steps between target updates.")
    target_entropy: Coefficient | None = Field(None, description="The randomness aimed at, where ent_coef is auto.")
    use_sde: bool | None = Field(None, description="Exploration that depends on the state (gSDE).")
    sde_sample_freq: int | None = Field(None, ge=-1, description="Steps between new noise of gSDE; -1: every rollout.")
    use_sde_at_warmup: bool | None = Field(None, description="gSDE before learning starts, too.")
    log_std_init: float | None = Field(None, description="The logarithm of the deviation that exploration begins with.")
    use_expln: bool | None = Field(None, description="gSDE: keep the deviation positive without growing too fast.")


class SAC(PolicyTrainer):
    name = "sac"
    description = "trains a policy for continuous actions by soft actor-critic (stable-baselines3)"
    Params = SACParams
    params: SACParams
    algorithm = Algorithm("sac", between_updates="train_freq", steps=1, actions="continuous")
