"""TD3: a fixed policy is learned from a replay buffer, with two critics that check each other. For continuous actions."""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.params import NoisyParams
from sharpen.trainers.rl.recipe import Algorithm


class TD3Params(NoisyParams):
    policy_delay: int | None = Field(None, ge=1, description="Updates of the critics for one of the policy.")
    target_policy_noise: float | None = Field(None, ge=0, description="Noise added to the actions critics learn from.")
    target_noise_clip: float | None = Field(None, ge=0, description="The most of that noise.")


class TD3(PolicyTrainer):
    name = "td3"
    description = "trains a policy for continuous actions by twin delayed DDPG (stable-baselines3)"
    Params = TD3Params
    params: TD3Params
    algorithm = Algorithm("td3", between_updates="train_freq", steps=1, actions="continuous")
