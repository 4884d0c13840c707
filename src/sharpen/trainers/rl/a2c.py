"""A2C: the policy is improved by one gradient step after every few steps of play in several environments."""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.params import OnPolicyParams
from sharpen.trainers.rl.recipe import Algorithm


class A2CParams(OnPolicyParams):
    use_rms_prop: bool | None = Field(None, description="RMSprop rather than Adam.")
    rms_prop_eps: float | None = Field(None, gt=0, description="What keeps RMSprop from dividing by zero.")
    tf_rms_prop: bool | None = Field(None, description="RMSprop as TensorFlow computes it; the Atari preset does.")


class A2C(PolicyTrainer):
    name = "a2c"
    description = "trains a policy by advantage actor-critic (stable-baselines3)"
    Params = A2CParams
    params: A2CParams
    algorithm = Algorithm("a2c", between_updates="n_steps", steps=5)
