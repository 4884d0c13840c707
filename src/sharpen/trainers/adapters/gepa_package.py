"""GEPA by its own package (`pip install 'sharpen[gepa]'`): its engine and prompts, our rollouts, questions and evidence.

GEPA keeps a pool of candidates compared item by item on val, builds on those that nobody dominates, and lets its reflection
model rewrite one part from what went wrong on a few train items. A child that does better there is measured on val. Its
parts are its components; its trainset is the train split, its valset the val items that decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from pydantic import Field, field_validator

from sharpen.core.chat import Message
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.engine.job import Job
from sharpen.trainers.adapters.host import ForeignParams, ForeignTrainer, Host, needed
from sharpen.trainers.adapters.showing import course, remark

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch, GEPAAdapter
    from gepa.core.callbacks import GEPACallback
    from gepa.core.result import GEPAResult

Trace: TypeAlias = tuple[Item, Outcome, float]
_VERSION = needed("gepa", "gepa")
_REFUSED = -1.0
"""The score of a text that is not measured: below every other, so that no way of accepting lets it in."""


class GEPAParams(ForeignParams):
    iterations: int = Field(30, ge=1, description="Steps: each rewrites one candidate, or merges two.")
    max_metric_calls: int | None = Field(
        None, ge=1, description="Stop after the step in which so many rollouts are passed."
    )
    reflection_minibatch_size: int = Field(3, ge=1, description="Train items a candidate is rewritten from.")
    candidate_selection_strategy: Literal["pareto", "current_best", "epsilon_greedy", "top_k_pareto"] = Field(
        "pareto", description="Whom a step builds on."
    )
    module_selector: Literal["round_robin", "all"] = Field("round_robin", description="Which parts a step rewrites.")
    skip_perfect_score: bool = Field(True, description="Rewrite nothing where the train items were all right.")
    acceptance_criterion: Literal["strict_improvement", "improvement_or_equal"] = Field(
        "strict_improvement", description="What a child must do on its train items to be measured on val."
    )
    use_merge: bool = Field(False, description="Merge the parts of two candidates now and then.")
    max_merge_invocations: int = Field(5, ge=0, description="The most merges.")
    reflection_prompt_template: str | None = Field(
        None,
        description="A prompt in place of GEPA's; <curr_param> and <side_info> stand for the text and the attempts.",
    )

    @field_validator("reflection_prompt_template")
    @classmethod
    def _has_its_signs(cls, template: str | None) -> str | None:
        missing = [sign for sign in ("<curr_param>", "<side_info>") if template is not None and sign not in template]
        if missing:
            raise ValueError(f"a prompt must hold {' and '.join(missing)}, where the text and the attempts go")
        return template


class GEPA(ForeignTrainer):
    name = "gepa"
    version = f"1, gepa {_VERSION}"
    description = "GEPA by its own package: rewrites what nobody dominates, from what went wrong on a few train items"
    Params = GEPAParams
    params: GEPAParams
    pools = True

    def steps(self, train: int) -> int:
        return self.params.iterations

    def items_per_step(self, train: int) -> int:
        return self.params.reflection_minibatch_size

    def remarks(self, job: Job) -> list[str]:
        if self.params.use_merge and len(job.initial.parts) == 1:
            return ["use_merge is left out: the skill has one part, so there is nothing to merge"]
        return []

    def optimize(self, host: Host) -> Mapping[str, str]:
        from gepa.api import optimize

        params, adapter = self.params, _Adapter(host)
        result: GEPAResult[None, int] = optimize(
            host.texts.out(),
            trainset=list(host.train),
            valset=list(host.val),
            adapter=cast("GEPAAdapter[Item, Trace, None]", adapter),
            reflection_lm=adapter.reflect,
            candidate_selection_strategy=params.candidate_selection_strategy,
            skip_perfect_score=params.skip_perfect_score,
            reflection_minibatch_size=min(params.reflection_minibatch_size, len(host.train)),
            reflection_prompt_template=params.reflection_prompt_template,
            module_selector=params.module_selector,
            use_merge=params.use_merge and len(host.job.initial.parts) > 1,
            max_merge_invocations=params.max_merge_invocations,
            max_metric_calls=params.max_metric_calls,
            stop_callbacks=lambda state: state.i + 1 >= params.iterations,
            acceptance_criterion=params.acceptance_criterion,
            logger=_Silent(),
            callbacks=[cast("GEPACallback", _Steps(host, adapter))],
            track_best_outputs=False,
            seed=host.seed(),
        )
        return cast("dict[str, str]", result.best_candidate)


class _Adapter:
    """What GEPA asks of the system it improves."""

    propose_new_texts = None

    def __init__(self, host: Host) -> None:
        self._host = host
        self.parent = 0

    def evaluate(
        self, batch: list[Item], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Trace, None]:
        from gepa.core.adapter import EvaluationBatch

        seen = self._host.measure(candidate, batch, parent=self.parent, whole=capture_traces)
        scores = seen.filled(_REFUSED, len(batch))
        traces = list(zip(batch, seen.outcomes, scores, strict=True)) if seen.outcomes else []
        return EvaluationBatch(
            outputs=[None] * len(batch), scores=scores, trajectories=traces if capture_traces else None
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: EvaluationBatch[Trace, None], components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        records = [_record(*trace) for trace in eval_batch.trajectories or () if trace[1].scored]
        return dict.fromkeys(components_to_update, records)

    def reflect(self, prompt: str | list[dict[str, Any]]) -> str:
        given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return self._host.ask([Message(said["role"], str(said["content"])) for said in given])


def _record(item: Item, outcome: Outcome, score: float) -> dict[str, Any]:
    """One attempt as GEPA's prompt shows it."""
    said = course(outcome)
    record: dict[str, Any] = {"Inputs": item.text, **({"Trajectory": said} if said else {})}
    return {**record, "Generated Outputs": outcome.answer, "Feedback": remark(item, outcome, score)}


class _Steps:
    """Tells the host where GEPA's iterations begin and end, and whom they build on."""

    def __init__(self, host: Host, adapter: _Adapter) -> None:
        self._host, self._adapter = host, adapter
        self._proposed = False

    def on_iteration_start(self, event: Mapping[str, Any]) -> None:
        self._proposed = False
        self._host.begin_step()

    def on_candidate_selected(self, event: Mapping[str, Any]) -> None:
        self._adapter.parent = event["candidate_idx"]

    def on_proposal_end(self, event: Mapping[str, Any]) -> None:
        self._proposed = True

    def on_iteration_end(self, event: Mapping[str, Any]) -> None:
        self._host.end_step("skip_tried" if self._proposed else "skip_no_failures")


class _Silent:
    def log(self, message: str) -> None:
        pass
