"""The settings of policy trainers: what all have in common, and what on-policy and off-policy algorithms share.

Hyperparameters keep the names they have in stable-baselines3. None means: as the preset says, else as stable-baselines3
does. What one algorithm alone has stands beside it.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from sharpen.core.digest import Json
from sharpen.trainers.rl.schedules import checked

Scheduled: TypeAlias = Annotated[float | str, AfterValidator(checked)]
"""A number, or `lin_0.001`: from there down to 0 over the whole training."""
Coefficient: TypeAlias = Annotated[float | str, AfterValidator(lambda given: _coefficient(given))]
Layers: TypeAlias = list[Annotated[int, Field(ge=1)]]

AUTO, NONE = "auto", "none"
OWN = (
    "total_steps", "eval_every", "eval_episodes", "preset", "policy", "net_arch", "activation", "normalize", "n_envs",
    "device", "keep_replay_buffer", "noise_type", "noise_std", "log_std_init", "ortho_init", "use_expln", "tf_rms_prop",
)  # fmt: skip
"""What does not go to the algorithm as it stands."""


class PolicyParams(BaseModel):
    """What every policy trainer can be told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    total_steps: int | None = Field(None, ge=1, description="Steps of the training; the preset's, or 100,000.")
    eval_every: int | None = Field(None, ge=1, description="Steps between evaluations; a twentieth of the training.")
    eval_episodes: int | None = Field(
        None,
        ge=1,
        description="Val episodes an evaluation plays; half of val. The rest is held back to confirm the best.",
    )
    preset: str = Field(
        AUTO, description="Published values: auto (this environment's, where there are any), none, or a preset's name."
    )
    policy: Literal["auto", "MlpPolicy", "CnnPolicy", "MultiInputPolicy"] = Field(
        "auto", description="The kind of network; auto goes by the observations."
    )
    net_arch: Layers | dict[str, Layers] | None = Field(
        None, description="Units of the hidden layers, such as [64, 64], or by network: {pi: [64], vf: [64]}."
    )
    activation: Literal["ELU", "GELU", "LeakyReLU", "Mish", "ReLU", "SELU", "SiLU", "Tanh"] | None = Field(
        None, description="The activation function of the hidden layers."
    )
    normalize: bool | None = Field(None, description="Put observations and rewards through running statistics.")
    n_envs: int | None = Field(None, ge=1, description="Environments played side by side in training.")
    device: str = Field(
        "cpu",
        pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$",
        description="Where torch computes: cpu, cuda, cuda:1, mps, or auto.",
    )
    learning_rate: Scheduled | None = Field(None, description="The learning rate, or a schedule such as lin_0.001.")
    gamma: float | None = Field(None, ge=0, le=1, description="Discount per step.")

    networks: ClassVar[tuple[str, ...]] = ()
    """The networks whose layers can be told one by one."""

    @field_validator("net_arch", mode="before")
    @classmethod
    def _known_networks(cls, given: Json) -> Json:
        by_name = isinstance(given, dict) and len(given) > 0 and set(given) == set(cls.networks)
        if given is not None and not all(map(_are_layers, given.values() if by_name else [given])):
            names = f", or those of {' and '.join(cls.networks)} by name" if cls.networks else ""
            raise ValueError(f"must be a list of units, such as [64, 64]{names}")
        return given


class OnPolicyParams(PolicyParams):
    """What PPO and A2C share."""

    networks: ClassVar[tuple[str, ...]] = ("pi", "vf")

    n_steps: int | None = Field(None, ge=1, description="Steps each environment plays between two updates.")
    gae_lambda: float | None = Field(None, ge=0, le=1, description="Bias against variance in estimating advantages.")
    ent_coef: float | None = Field(None, description="Weight of the entropy in the loss.")
    vf_coef: float | None = Field(None, ge=0, description="Weight of the value function in the loss.")
    max_grad_norm: float | None = Field(None, gt=0, description="The largest norm of a gradient.")
    normalize_advantage: bool | None = Field(None, description="Normalise advantages.")
    use_sde: bool | None = Field(None, description="Exploration that depends on the state (gSDE).")
    sde_sample_freq: int | None = Field(None, ge=-1, description="Steps between new noise of gSDE; -1: every rollout.")
    log_std_init: float | None = Field(None, description="The logarithm of the deviation that exploration begins with.")
    ortho_init: bool | None = Field(None, description="Begin with orthogonal weights.")
    use_expln: bool | None = Field(None, description="gSDE: keep the deviation positive without growing too fast.")


class OffPolicyParams(PolicyParams):
    """What DQN, SAC and TD3 share."""

    buffer_size: int | None = Field(None, ge=1, description="Transitions the replay buffer holds.")
    learning_starts: int | None = Field(None, ge=0, description="Steps of random play before learning starts.")
    batch_size: int | None = Field(None, ge=1, description="Transitions of one gradient step.")
    tau: float | None = Field(None, ge=0, le=1, description="How far a target network follows at an update.")
    train_freq: int | None = Field(None, ge=1, description="Steps each environment plays between two updates.")
    gradient_steps: int | None = Field(None, ge=-1, description="Gradient steps of an update; -1: one per step played.")
    n_steps: int | None = Field(None, ge=1, description="Steps a return is looked ahead before it is estimated.")
    keep_replay_buffer: bool = Field(
        True, description="Save the replay buffer too. Without it a resumed training goes on with an empty one."
    )


class NoisyParams(OffPolicyParams):
    """What SAC and TD3 share: continuous actions, to which noise can be added."""

    networks: ClassVar[tuple[str, ...]] = ("pi", "qf")

    noise_type: Literal["none", "normal", "ornstein-uhlenbeck"] | None = Field(
        None, description="Noise added to actions in training."
    )
    noise_std: float | None = Field(None, ge=0, description="The deviation of that noise.")


def _are_layers(given: Json) -> bool:
    return isinstance(given, list) and all(type(units) is int and units >= 1 for units in given)


def _coefficient(given: float | str) -> float | str:
    """An entropy coefficient: a number, `auto`, or `auto_0.1`, which begins there."""
    try:
        return float(given)
    except ValueError:
        if re.fullmatch(r"auto(_\d*\.?\d+(e-?\d+)?)?", str(given)):
            return given
        raise ValueError("must be a number, auto, or auto_NUMBER such as auto_0.1") from None
