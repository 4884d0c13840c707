"""Online scheduling: jobs arrive one by one and go at once to one of the machines, which differ in speed from job to job.

60 jobs, 5 machines, times of 1 to 100. The reference is the shortest schedule for somebody who knows all jobs
beforehand, by integer programming, to within one in a hundred.
"""

from __future__ import annotations

from sharpen.core.digest import Json
from sharpen.tasks.algorithms.base import AlgorithmTask, Game, Instance, choices, comparable, drawn

JOBS, MACHINES = 60, 5


def play(instance: Instance) -> Game:
    loads, where = [0] * instance["machines"], []
    for times in instance["times"]:
        fastest, mean, busiest = min(times), sum(loads) / len(loads), max(loads)
        calls = [(load, time, fastest, mean, busiest) for load, time in zip(loads, times, strict=True)]
        bad = comparable((yield calls))
        best = bad.index(min(bad))
        loads[best] += times[best]
        where.append(best)
    return where


class MachineScheduling(AlgorithmTask):
    name = "machine-scheduling"
    about = "Give each job to a machine when it arrives, so that all are done as early as can be."
    signature = "badness(load, time, fastest, mean, busiest)"
    rules_of_play = (
        "load is the work a machine has, time how long this job would take it, fastest the shortest time of any machine.",
        "mean and busiest are the mean and the largest load of all machines.",
        "The machine of the lowest badness gets the job.",
    )
    measure = "makespan"
    play = play
    start = '''"""The machine with the least to do, with some regard for how long the job takes there."""


def badness(load, time, fastest, mean, busiest):
    return 1.0 * load + 0.2 * time
'''

    def instance(self, seed: int) -> Instance:
        stream = drawn(seed, self.name)
        return {"machines": MACHINES, "times": [[1 + stream.below(100) for _ in range(MACHINES)] for _ in range(JOBS)]}

    def value(self, instance: Instance, answer: Json) -> float:
        loads = [0] * MACHINES
        for times, machine in zip(instance["times"], choices(answer, JOBS, MACHINES, "machines"), strict=True):
            loads[machine] += times[machine]
        return float(max(loads))
