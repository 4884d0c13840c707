"""The three GEPA searches: members are compared item by item on one part of val, and whoever wins some items has a say.

They share mutation, acceptance and merging, and differ in whom they build on: `gepa-base` draws one member by the items it
wins, `gepa-ucb` takes the one with the highest bound and lets the one with the lowest go, `gepa-beam` builds on several of
the front in every step.
"""

from __future__ import annotations

from pydantic import Field

from sharpen.trainers.search.acceptance import MINIBATCH
from sharpen.trainers.search.loop import PoolSearch
from sharpen.trainers.search.params import ACCEPTANCE, IteratedParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.retention import HighestBound, MostWins
from sharpen.trainers.search.selection import ParetoBeam, ParetoSample, ParetoUCB
from sharpen.trainers.search.yardstick import Subset


class GEPAParams(IteratedParams):
    acceptance: str = Field(MINIBATCH, description=ACCEPTANCE)
    pareto_subset_size: int = Field(24, ge=1, description="Val items members are compared on; the same in every step.")
    max_buffer_size: int = Field(16, ge=2, description="The most members of the pool.")
    merge_every: int = Field(5, ge=0, description="After so many steps the parts of two members are crossed; 0: never.")


class GEPAUCBParams(GEPAParams):
    merge_every: int = Field(6, ge=0, description="After so many steps the parts of two members are crossed; 0: never.")
    ucb_exploration_factor: float = Field(0.8, ge=0.0, description="Weight of having been explored little.")


class GEPABeamParams(GEPAParams):
    merge_every: int = Field(6, ge=0, description="After so many steps the parts of two members are crossed; 0: never.")
    beam_width: int = Field(3, ge=1, description="Members of the front that every step builds on.")


class GEPABase(PoolSearch):
    name = "gepa-base"
    description = "a pool on the Pareto front of val items; parents drawn by the items they win"
    Params = GEPAParams
    params: GEPAParams

    def policies(self) -> Plan:
        given = self.params
        return Plan(
            given.iterations,
            ParetoSample(),
            Subset(given.pareto_subset_size),
            MostWins(given.max_buffer_size),
            merge_every=given.merge_every,
        )


class GEPAUCB(PoolSearch):
    name = "gepa-ucb"
    description = "the same pool; the parent has the highest bound on the items it wins, the lowest one leaves"
    Params = GEPAUCBParams
    params: GEPAUCBParams

    def policies(self) -> Plan:
        given = self.params
        bound = ParetoUCB(given.ucb_exploration_factor)
        return Plan(
            given.iterations,
            bound,
            Subset(given.pareto_subset_size),
            HighestBound(given.max_buffer_size, bound),
            merge_every=given.merge_every,
        )


class GEPABeam(PoolSearch):
    name = "gepa-beam"
    description = "the same pool; several members of the front are built on in every step"
    Params = GEPABeamParams
    params: GEPABeamParams

    def policies(self) -> Plan:
        given = self.params
        return Plan(
            given.iterations,
            ParetoBeam(given.beam_width),
            Subset(given.pareto_subset_size),
            MostWins(given.max_buffer_size),
            merge_every=given.merge_every,
        )
