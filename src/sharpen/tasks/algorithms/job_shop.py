"""Job shop: which waiting operation a machine takes next, by a dispatching rule.

8 jobs of 5 operations, each on another machine. Whenever something can start, the operation with the highest priority
does. The reference is the shortest schedule that simulated annealing found in four runs.
"""

from __future__ import annotations

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, Invalid, choices, comparable, drawn

JOBS, MACHINES = 8, 5


def play(instance: Instance) -> Game:
    jobs = instance["jobs"]
    done, ready, free = [0] * len(jobs), [0] * len(jobs), [0] * instance["machines"]
    load = [sum(time for job in jobs for machine, time in job if machine == number) for number in range(len(free))]
    order: list[int] = []
    while len(order) < sum(map(len, jobs)):
        waiting = [job for job in range(len(jobs)) if done[job] < len(jobs[job])]
        begins = {job: max(ready[job], free[jobs[job][done[job]][0]]) for job in waiting}
        now = min(begins.values())
        startable = [job for job in waiting if begins[job] == now]
        calls = []
        for job in startable:
            machine, time = jobs[job][done[job]]
            rest = [later for _, later in jobs[job][done[job] :]]
            calls.append((time, sum(rest), len(rest), now - ready[job], load[machine]))
        urgency = comparable((yield calls))
        chosen = startable[urgency.index(max(urgency))]
        machine, time = jobs[chosen][done[chosen]]
        ready[chosen] = free[machine] = now + time
        load[machine] -= time
        done[chosen] += 1
        order.append(chosen)
    return order


def makespan(jobs: list[list[list[int]]], machines: int, order: list[int]) -> int:
    """When the last operation ends, if operations are started as early as can be in this order of jobs."""
    done, ready, free = [0] * len(jobs), [0] * len(jobs), [0] * machines
    for job in order:
        machine, time = jobs[job][done[job]]
        ready[job] = free[machine] = max(ready[job], free[machine]) + time
        done[job] += 1
    return max(ready)


class JobShop(AlgorithmTask):
    name = "job-shop"
    about = "Decide which waiting operation a machine takes next, so that all jobs are done as early as can be."
    signature = "priority(time, rest, steps, waited, load)"
    rules_of_play = (
        "time is how long the operation takes, rest the work the job still has, steps how many operations that is.",
        "waited is how long the job has been waiting, load the work left for the machine.",
        "The operation of the highest priority starts.",
    )
    measure = "makespan"
    play = play
    start = '''"""Short operations first."""


def priority(time, rest, steps, waited, load):
    return 0.1 * waited - 1.0 * time
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        jobs = [[[machine, 1 + stream.below(99)] for machine in stream.shuffled(range(MACHINES))] for _ in range(JOBS)]
        return {"machines": MACHINES, "jobs": jobs}

    def value(self, instance: Instance, answer: Json) -> float:
        order = choices(answer, JOBS * MACHINES, JOBS, "jobs")
        if any(order.count(job) != MACHINES for job in range(JOBS)):
            raise Invalid(f"every job must occur {MACHINES} times, once for each operation")
        return float(makespan(instance["jobs"], MACHINES, order))
