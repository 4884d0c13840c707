"""The searches hold to the contract of trainers. One of them is killed and resumed; the others share its loop."""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.models.base import Model
from sharpen.testing.trainers import TrainerContract
from sharpen.trainers.base import Trainer
from sharpen.trainers.minibatch import MinibatchParams, MinibatchTrainer
from sharpen.trainers.search.classic import BasicParams, BasicSearch, BeamParams, BeamSearch, UCBParams, UCBSearch
from sharpen.trainers.search.gepa import GEPAUCB, GEPABase, GEPABeam, GEPABeamParams, GEPAParams, GEPAUCBParams
from sharpen.trainers.search.pareto_search import ParetoParams, ParetoSearch
from sharpen.trainers.search.priority_search import Polca, PolcaParams, PriorityParams, PrioritySearch

SMALL = {"batch_size": 6, "finalists": 2}


class TestGEPABeam(TrainerContract):
    def make(self) -> Trainer:
        return GEPABeam(GEPABeamParams(iterations=3, pareto_subset_size=6, beam_width=2, **SMALL))


class Relative(TrainerContract):
    """Of the same loop: being killed is not tried again."""

    test_killed_at_any_write_and_resumed_it_ends_the_same = None
    test_a_cap_ends_a_killed_job_where_it_ends_an_undisturbed_one = None


class TestGEPABaseWithoutAnOptimizer(Relative):
    def make(self) -> Trainer:
        return GEPABase(GEPAParams(iterations=3, acceptance="always", **SMALL))

    def models(self, noise: float) -> Mapping[str, Model]:
        return {"target": super().models(noise)["target"]}


class TestGEPAUCBWithAGate(Relative):
    def make(self) -> Trainer:
        return GEPAUCB(GEPAUCBParams(iterations=3, acceptance="sequential", max_buffer_size=2, **SMALL))


class TestParetoSearch(Relative):
    def make(self) -> Trainer:
        return ParetoSearch(ParetoParams(iterations=3, max_buffer_size=2, **SMALL))


class TestPrioritySearch(Relative):
    def make(self) -> Trainer:
        given = PriorityParams(
            iterations=3, num_candidates=2, num_proposals=2, num_batches=2, evaluation_batch_size=5,
            memory_update_frequency=2, short_term_memory_size=2, score_function="ucb", **SMALL,
        )  # fmt: skip
        return PrioritySearch(given)


class TestPolca(Relative):
    def make(self) -> Trainer:
        return Polca(PolcaParams(iterations=2, evaluation_batch_size=5, **SMALL))


class TestBasicSearch(Relative):
    def make(self) -> Trainer:
        return BasicSearch(BasicParams(iterations=2, num_proposals=2, **SMALL))


class TestBeamSearch(Relative):
    def make(self) -> Trainer:
        return BeamSearch(BeamParams(max_depth=2, num_proposals=2, beam_width=2, validation_dataset_size=5, **SMALL))


class TestUCBSearch(Relative):
    def make(self) -> Trainer:
        return UCBSearch(UCBParams(iterations=3, evaluation_batch_size=5, **SMALL))


class TestMinibatch(Relative):
    def make(self) -> Trainer:
        return MinibatchTrainer(MinibatchParams(epochs=1, batch_size=8))
