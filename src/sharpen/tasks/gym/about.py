"""What a policy says of itself: `policy.json`, the text part of a policy's candidate.

It names the environment, the algorithm, the architecture and the SHA-256 of the weights, so that a policy is known by this
text alone; the weights lie beside it in `policy.pt` and what going on with the training takes in `state.pt`. Nothing here
needs a package: whoever only wants to know what a checkpoint is reads this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json, canonical
from sharpen.core.errors import UsageError, nearest
from sharpen.core.redact import BLANK

DESCRIPTION = "policy.json"
WEIGHTS = "policy.pt"
STATE = "state.pt"
UNTRAINED = "untrained"
ALGORITHMS = ("a2c", "dqn", "ppo", "sac", "td3")
POLICIES = ("CnnPolicy", "MlpPolicy", "MultiInputPolicy")


@dataclass(frozen=True)
class Architecture:
    """What is decided before anything is learned. `policy_kwargs` is JSON, as `policy.resolved` reads it, with `use_sde`
    among it where the algorithm was told so; `settings` are the environment's that differ from its defaults."""

    environment: str
    algorithm: str
    policy: str
    policy_kwargs: Mapping[str, Json] = field(default_factory=dict)
    settings: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, value, known in (("algorithm", self.algorithm, ALGORITHMS), ("policy", self.policy, POLICIES)):
            if value not in known:
                raise UsageError(f"unknown {what} {value!r}{nearest(str(value), known)}; there are {', '.join(known)}")


@dataclass(frozen=True)
class About:
    """A policy as `policy.json` has it. `parameters` are the numbers it acts with, `trained_parameters` all that were
    trained with it: a critic counts there, a copy of a network that only follows it nowhere."""

    architecture: Architecture
    parameters: int
    trained_parameters: int
    weights: str

    def text(self) -> str:
        own = asdict(self)
        architecture = own.pop("architecture")
        if not architecture["settings"]:
            del architecture["settings"]
        return canonical({**architecture, **own}) + "\n"


def untrained(environment: str) -> Candidate:
    """The candidate that stands for no policy at all: its actions are drawn at random."""
    return Candidate({DESCRIPTION: canonical({"environment": environment, "policy": UNTRAINED}) + "\n"})


def read(candidate: Candidate) -> About | None:
    """What a candidate says of itself; None where it is the untrained one."""
    written = _object(candidate)
    if written.get("policy") == UNTRAINED:
        return None
    try:
        return About(
            Architecture(
                str(written["environment"]),
                written["algorithm"],
                written["policy"],
                written["policy_kwargs"],
                written.get("settings", {}),
            ),
            int(written["parameters"]),
            int(written["trained_parameters"]),
            str(written["weights"]),
        )
    except KeyError as error:
        raise UsageError(
            f"{DESCRIPTION} of this candidate lacks {error.args[0]!r}; it is not a policy of sharpen"
        ) from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{DESCRIPTION} of this candidate is damaged: {error}") from error


def environment_of(candidate: Candidate) -> str:
    """The environment a policy was made for."""
    return str(_object(candidate).get("environment", ""))


def settings_of(candidate: Candidate) -> dict[str, Json]:
    """How a policy's environment is made, where that is not by its defaults. With a secret it can't be made from here."""
    said = read(candidate)
    settings = {} if said is None else dict(said.architecture.settings)
    if BLANK in canonical(settings):
        raise UsageError(
            f"{environment_of(candidate)} was made with a secret among its kwargs, and no checkpoint keeps one; let the "
            "environment read it from an environment variable"
        )
    return settings


def _object(candidate: Candidate) -> dict[str, Json]:
    if DESCRIPTION not in candidate.parts:
        raise UsageError(f"a policy has the part {DESCRIPTION}; this candidate has {', '.join(candidate.parts)}")
    try:
        written = json.loads(candidate[DESCRIPTION])
    except ValueError as error:
        raise UsageError(f"{DESCRIPTION} of this candidate is not JSON: {error}") from error
    if not isinstance(written, dict):
        raise UsageError(f"{DESCRIPTION} of this candidate must be an object, got {type(written).__name__}")
    return written
