"""PPO: the policy is improved from its own recent play, and held near to what it was by clipping."""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.params import OnPolicyParams, Scheduled
from sharpen.trainers.rl.recipe import Algorithm


class PPOParams(OnPolicyParams):
    batch_size: int | None = Field(None, ge=2, description="Steps of one gradient step.")
    n_epochs: int | None = Field(None, ge=1, description="How often an update goes through what was played.")
    clip_range: Scheduled | None = Field(None, description="How far an update may go; may be a schedule.")
    clip_range_vf: Scheduled | None = Field(
        None, description="The same for the value function; not clipped by default."
    )
    target_kl: float | None = Field(None, gt=0, description="End an update early beyond this divergence.")


class PPO(PolicyTrainer):
    name = "ppo"
    description = "trains a policy by proximal policy optimisation (stable-baselines3)"
    Params = PPOParams
    params: PPOParams
    algorithm = Algorithm("ppo", between_updates="n_steps", steps=2048)
