"""The most a search may take, from its plan and the sizes of the data. Pure.

Every parent attempts its batches, every child that is wanted comes about and is let in, and no measurement is shared. What
is counted twice here is paid once, so a search takes less.
"""

from __future__ import annotations

import math

from sharpen.gates import registry as gates
from sharpen.gates.sequential import Sequential
from sharpen.trainers.base import Effort, Ground
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.search.acceptance import MINIBATCH
from sharpen.trainers.search.params import SearchParams
from sharpen.trainers.search.plan import Plan
from sharpen.trainers.search.priority import ByPriority
from sharpen.trainers.search.retention import BestOnStep
from sharpen.trainers.search.selection import Everyone, ParetoBeam
from sharpen.trainers.search.yardstick import Drawn, Subset

ASKED_AT_MOST = 2
"""An answer that is of no use is asked for once more."""


def most(plan: Plan, params: SearchParams, ground: Ground) -> Effort:
    """What a plan may take before the closing measurement."""
    parents, batches = (
        _parents(plan),
        math.ceil(min(params.batch_size * plan.batches, ground.train) / params.batch_size),
    )
    items, ruler = min(params.batch_size * plan.batches, ground.train), _ruler(plan, ground.deciding)
    children = plan.proposals * (plan.share or parents) * batches
    crossed = ruler if plan.merge_every and ground.parts > 1 else 0
    measured = (children + (parents if plan.yardstick.parents else 0)) * ruler + crossed
    step = parents * items + children * _admitting(plan, params, ground) + measured
    finalists = (1 + plan.finalists) * ground.deciding
    looks = max(children, parents * batches) if ground.asks and params.analysts else 0
    questions = looks * questions_per_look(params, params.batch_size) + children * 2 * bool(looks)
    return Effort(plan.steps, ruler + plan.steps * step + finalists, plan.steps * questions * ASKED_AT_MOST)


def questions_per_look(params: ProposalParams, attempts: int) -> int:
    """Analysts that read so many attempts, and the merging of what they say."""
    readers = math.ceil(attempts / params.minibatch_size) + (0 if params.failure_only else 1)
    return readers + _merges(readers, params.merge_batch_size) + 1


def _merges(patches: int, size: int) -> int:
    if patches <= 1:
        return 0
    chunks = math.ceil(patches / size)
    return chunks + _merges(chunks, size)


def _parents(plan: Plan) -> int:
    """Members a step builds on. The leader stays whatever the retention says."""
    if isinstance(plan.selection, ParetoBeam):
        return plan.selection.width
    if isinstance(plan.selection, ByPriority):
        return plan.selection.num_candidates
    if isinstance(plan.selection, Everyone) and isinstance(plan.retention, BestOnStep):
        return plan.retention.size + 1
    return 1


def _ruler(plan: Plan, deciding: int) -> int:
    return min(plan.yardstick.size, deciding) if isinstance(plan.yardstick, Drawn | Subset) else deciding


def _admitting(plan: Plan, params: SearchParams, ground: Ground) -> int:
    """Rollouts to decide about one child."""
    if plan.acceptance == MINIBATCH:
        return min(params.batch_size, ground.train)
    if not plan.by_gate:
        return 0
    gate = gates.get(plan.acceptance, plan.gate_params)
    pairs = gate.most_pairs(ground.repeatable) if isinstance(gate, Sequential) else 1.0
    return math.ceil(2 * pairs * ground.deciding)
