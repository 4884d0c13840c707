"""DSPy's optimizers (`pip install 'sharpen[dspy]'`): few-shot with random search, COPRO and MIPROv2.

Each is given a program that stands for the skill (`dspy_program.py`) and runs in one thread. Their trainset is the train
split, their valset the val items that decide. COPRO, which shows its model nothing but texts and their scores, scores on
those too. Every program that is evaluated on all of them may become the best at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.engine.job import Job
from sharpen.trainers.adapters.host import ForeignParams, ForeignTrainer, Host, needed

if TYPE_CHECKING:
    from sharpen.trainers.adapters.dspy_program import Link

_VERSION = needed("dspy", "dspy")


class DemoParams(ForeignParams):
    max_bootstrapped_demos: int = Field(
        4, ge=0, description="The most examples of a set that the model got right itself."
    )
    max_labeled_demos: int = Field(4, ge=0, description="The most examples of a set taken with their reference.")


class BootstrapParams(DemoParams):
    max_bootstrapped_demos: int = Field(
        4, ge=1, description="The most examples of a set that the model got right itself."
    )
    num_candidate_programs: int = Field(16, ge=1, description="Sets that are drawn, beside the plain ones.")


class CoproParams(ForeignParams):
    breadth: int = Field(10, ge=2, description="Instructions written in a round.")
    depth: int = Field(3, ge=1, description="Rounds: each sees the scores of those before.")


class MiproParams(DemoParams):
    num_candidates: int = Field(8, ge=2, description="Instructions, and sets of examples, that are combined.")
    num_trials: int = Field(15, ge=1, description="Combinations that are tried.")
    minibatch: bool = Field(True, description="Try combinations on a part of val first.")
    minibatch_size: int = Field(35, ge=1, description="Val items of such a part; at most all that decide.")
    minibatch_full_eval_steps: int = Field(
        5, ge=1, description="Trials from one measurement on all of them to the next."
    )
    view_data_batch_size: int = Field(10, ge=1, description="Train items shown at a time to describe the data.")
    data_aware_proposer: bool = Field(True, description="Let instructions be written with a description of the data.")
    tip_aware_proposer: bool = Field(True, description="Give a tip on what kind of instruction to write.")
    fewshot_aware_proposer: bool = Field(True, description="Show worked examples to whoever writes instructions.")


class DspyTrainer(ForeignTrainer):
    """A trainer whose candidates a DSPy optimizer finds."""

    version = f"1, dspy {_VERSION}"

    def compile(self, host: Host, link: Link, program: Any, lm: Any) -> Any:
        """The program the optimizer ends with."""
        raise NotImplementedError

    def optimize(self, host: Host) -> Mapping[str, str] | None:
        import dspy
        from dspy.utils.exceptions import AdapterParseError

        from sharpen.trainers.adapters.dspy_program import Link, OptimizerLM, SkillProgram, Steps

        link = Link(host)
        lm = OptimizerLM(host)
        settings = {"lm": lm, "callbacks": [Steps(link)], "num_threads": 1, "disable_history": True, "trace": None}
        with dspy.context(**settings):
            try:
                ended = self.compile(host, link, SkillProgram(link), lm)
            except AdapterParseError:
                host.lost()
                return None
        texts: dict[str, str] = ended.texts()
        return texts


def _shuffled(host: Host, items: Collection[Item]) -> list[Item]:
    """Train items in an order of the job's own: DSPy's draws do not depend on a seed of ours."""
    return host.job.rng(host.source, "train").shuffled(list(items))


def _demonstrable(host: Host) -> list[Item]:
    return _shuffled(host, [item for item in host.train if host.job.task.example(item) is not None])


class DspyBootstrap(DspyTrainer):
    name = "dspy-bootstrap"
    description = "DSPy's BootstrapFewShotWithRandomSearch: sets of worked examples; the best on val stays"
    Params = BootstrapParams
    params: BootstrapParams
    asks = False

    def steps(self, train: int) -> int:
        return self.params.num_candidate_programs + 2

    def remarks(self, job: Job) -> list[str]:
        if any(job.task.example(item) is not None for item in job.splits.train):
            return []
        return ["no train item of this task can be a worked example: there is nothing to try"]

    def compile(self, host: Host, link: Link, program: Any, lm: Any) -> Any:
        from dspy.teleprompt import BootstrapFewShotWithRandomSearch

        from sharpen.trainers.adapters.dspy_program import metric

        items = _demonstrable(host)
        if not items:
            return program
        optimizer = BootstrapFewShotWithRandomSearch(
            metric=metric,
            max_bootstrapped_demos=self.params.max_bootstrapped_demos,
            max_labeled_demos=self.params.max_labeled_demos,
            num_candidate_programs=self.params.num_candidate_programs,
            num_threads=1,
        )
        return optimizer.compile(program, trainset=link.examples(items), valset=link.examples(host.val))


class DspyCopro(DspyTrainer):
    name = "dspy-copro"
    description = (
        "DSPy's COPRO: the optimizer writes instructions, sees how earlier ones scored, and writes better ones"
    )
    Params = CoproParams
    params: CoproParams
    learns = False

    def steps(self, train: int) -> int:
        return self.params.breadth * self.params.depth

    def compile(self, host: Host, link: Link, program: Any, lm: Any) -> Any:
        from dspy.teleprompt import COPRO

        from sharpen.trainers.adapters.dspy_program import metric

        params = self.params
        optimizer = COPRO(
            prompt_model=lm, metric=metric, breadth=params.breadth, depth=params.depth,
            init_temperature=params.temperature,
        )  # fmt: skip
        return optimizer.compile(program, trainset=link.examples(host.val), eval_kwargs={"num_threads": 1})


class DspyMipro(DspyTrainer):
    name = "dspy-mipro"
    description = (
        "DSPy's MIPROv2: combinations of instructions and sets of worked examples, chosen by Bayesian optimisation"
    )
    version = f"1, dspy {_VERSION}, optuna {needed('optuna', 'dspy')}"
    Params = MiproParams
    params: MiproParams

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        super().check(splits, initial, roles)
        if len(splits.train) < 2:
            raise UsageError(f"trainer {self.name} needs at least 2 train items; there is {len(splits.train)}")

    def steps(self, train: int) -> int:
        params = self.params
        full = params.num_trials // params.minibatch_full_eval_steps + 2 if params.minibatch else 0
        return params.num_trials + full

    def compile(self, host: Host, link: Link, program: Any, lm: Any) -> Any:
        from dspy.teleprompt import MIPROv2

        from sharpen.trainers.adapters.dspy_program import metric

        params, items = self.params, _demonstrable(host)
        optimizer = MIPROv2(
            metric=metric,
            prompt_model=lm,
            task_model=lm,
            max_bootstrapped_demos=params.max_bootstrapped_demos if items else 0,
            max_labeled_demos=params.max_labeled_demos if items else 0,
            auto=None,
            num_candidates=params.num_candidates,
            num_threads=1,
            seed=1 + host.seed() % (2**31 - 1),  # 0 would be taken for none
            init_temperature=params.temperature,
            track_stats=False,
        )
        return optimizer.compile(
            program,
            trainset=link.examples(items or _shuffled(host, host.train)),
            valset=link.examples(host.val),
            num_trials=params.num_trials,
            minibatch=params.minibatch and params.minibatch_size < len(host.val),
            minibatch_size=min(params.minibatch_size, len(host.val)),
            minibatch_full_eval_steps=params.minibatch_full_eval_steps,
            program_aware_proposer=False,  # the program is ours, and says nothing about the task
            data_aware_proposer=params.data_aware_proposer,
            view_data_batch_size=params.view_data_batch_size,
            tip_aware_proposer=params.tip_aware_proposer,
            fewshot_aware_proposer=params.fewshot_aware_proposer,
        )
