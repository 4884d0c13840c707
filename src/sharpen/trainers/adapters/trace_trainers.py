"""Trace's optimizers (`pip install 'sharpen[trace]'`): OptoPrime, OPRO and TextGrad, one batch of train items at a time.

The package has optimizers and no loop, so the loop here is Trace's minibatch training: attempt a batch, send what the scorer
says back, let the optimizer change the parts, and take the change back unless the batch gets better. What stays is measured
on val and may become the best.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from sharpen.trainers.adapters.host import ForeignParams, ForeignTrainer, Host, Seen, needed
from sharpen.trainers.reflact.rollout import FULL_MARKS, items_of_step

_VERSION = needed("trace-opt", "trace")


class TraceParams(ForeignParams):
    iterations: int = Field(20, ge=1, description="Steps: each changes the parts after one batch of train items.")
    batch_size: int = Field(8, ge=1, description="Train items of a step.")
    ensure_improvement: bool = Field(True, description="Take a change back unless the batch gets better.")
    improvement_threshold: float = Field(0.0, ge=0.0, description="By how much it must get better.")


class OptoPrimeParams(TraceParams):
    memory_size: int = Field(0, ge=0, description="Earlier versions and their feedback that are shown again.")


class TraceTrainer(ForeignTrainer):
    """A trainer whose candidates a Trace optimizer writes."""

    version = f"1, trace-opt {_VERSION}"
    Params = TraceParams
    params: TraceParams
    optimizer: ClassVar[str]
    pools = True

    def steps(self, train: int) -> int:
        return self.params.iterations

    def items_per_step(self, train: int) -> int:
        return self.params.batch_size

    def settings(self) -> dict[str, Any]:
        """What the optimizer itself is given."""
        return {"log": False, "max_tokens": self.params.answer_tokens}

    def optimize(self, host: Host) -> Mapping[str, str]:
        # Trace brings LiteLLM along, which fetches a list of prices when it is imported unless it is told not to.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from sharpen.trainers.adapters.trace_graph import Parameters

        parameters = Parameters(host, self.optimizer, self.settings())
        for step in range(1, self.params.iterations + 1):
            host.begin_step()
            host.end_step(self._take(host, parameters, step))
        return parameters.texts

    def _take(self, host: Host, parameters: Any, step: int) -> str:
        """One step. Returns what to call it where nothing was proposed."""
        before, items = parameters.texts, items_of_step(host.job, step, self.params.batch_size)
        old = host.measure(before, items, whole=True)
        if all(score is None or score >= FULL_MARKS for score in old.scores):
            return "skip_no_failures"
        parameters.step(items, old)
        if parameters.texts == before:
            return "skip_no_rewrite"
        if self._stays(old, host.measure(parameters.texts, items)):
            host.measure(parameters.texts, host.val)
        else:
            parameters.take_back(before)
        return "skip_no_rewrite"

    def _stays(self, old: Seen, new: Seen) -> bool:
        if new.version.refusal is not None:
            return False
        if not self.params.ensure_improvement:
            return True
        pairs = [(a, b) for a, b in zip(new.scores, old.scores, strict=True) if a is not None and b is not None]
        gain = sum(a - b for a, b in pairs) / max(1, len(pairs))
        return gain > self.params.improvement_threshold


class TraceOptoPrime(TraceTrainer):
    name = "trace-optoprime"
    description = (
        "Trace's OptoPrime: the optimizer sees the batch, its answers and the feedback, and suggests new values"
    )
    optimizer = "optoprime"
    Params = OptoPrimeParams
    params: OptoPrimeParams

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "memory_size": self.params.memory_size}


class TraceOpro(TraceTrainer):
    name = "trace-opro"
    description = "Trace's OPRO: the optimizer sees all earlier versions with their feedback and suggests another one"
    optimizer = "opro"


class TraceTextGrad(TraceTrainer):
    name = "trace-textgrad"
    description = "Trace's TextGrad: criticism of each part is asked for first, then the part is rewritten by it"
    optimizer = "textgrad"
