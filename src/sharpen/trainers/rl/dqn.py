"""DQN: the value of every action is learned from a replay buffer, and the best one taken. For discrete actions."""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.rl.loop import PolicyTrainer
from sharpen.trainers.rl.params import OffPolicyParams
from sharpen.trainers.rl.recipe import Algorithm


class DQNParams(OffPolicyParams):
    target_update_interval: int | None = Field(None, ge=1, description="Steps between updates of the target network.")
    exploration_fraction: float | None = Field(
        None, ge=0, le=1, description="Share of the training over which exploration falls."
    )
    exploration_initial_eps: float | None = Field(None, ge=0, le=1, description="Share of random actions at first.")
    exploration_final_eps: float | None = Field(None, ge=0, le=1, description="Share of random actions in the end.")
    max_grad_norm: float | None = Field(None, gt=0, description="The largest norm of a gradient.")


class DQN(PolicyTrainer):
    name = "dqn"
    description = "trains a policy for discrete actions by deep Q-learning (stable-baselines3)"
    Params = DQNParams
    params: DQNParams
    algorithm = Algorithm("dqn", between_updates="train_freq", steps=4, actions="discrete")
