"""The embedded model's speed: items per second with and without the shared prefix computed once.

    python benchmarks/local_model.py [--items 60] [--workers N]

Number words to digits, a prefix of about 300 tokens, at most 16 new tokens per item. Row (a) asks the engine for one item
after the other and lets it compute every prompt from the beginning; (b) and (c) go through `LocalModel`. The rate counts
the prefix's own computation and not the start of the processes. The last lines say whether the texts were the same.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import time
from dataclasses import dataclass

from sharpen.core.chat import Request
from sharpen.core.rng import Stream
from sharpen.models.local import LocalModel
from sharpen.models.weights import locate

ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
EXAMPLES = 16
INSTRUCTIONS = (
    "Write the number that the user gives in words as digits. Answer with the digits only, with no spaces, "
    "no commas and no other words. Mind the hundreds, the tens and the ones.\n\n"
)


@dataclass(frozen=True)
class Row:
    label: str
    items: int
    wall: float
    cpu: float
    texts: list[str]


def words(number: int) -> str:
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    rest = f" and {words(number % 100)}" if number % 100 else ""
    return f"{ONES[number // 100]} hundred{rest}"


def make_requests(items: int) -> list[Request]:
    numbers = Stream(1, "local-model").shuffled(range(100, 1000))
    blocks = "".join(f"User: {words(n)}\nAssistant: {n}\n" for n in numbers[:EXAMPLES])
    prefix = f"{INSTRUCTIONS}{blocks}User: "
    return [
        Request(prompt=f"{prefix}{words(n)}\nAssistant:", shared=len(prefix), max_tokens=16, stop=("\n",))
        for n in numbers[EXAMPLES : EXAMPLES + items]
    ]


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def without_reuse(requests: list[Request]) -> Row:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(locate())
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.ui = params.fit_params = False
    params.cache_ram_mib = 0
    params.verbosity = 1
    server = xllamacpp.Server(params)
    fixed = {"temperature": 0.0, "top_k": 1, "cache_prompt": False}
    texts = []
    wall, cpu = time.perf_counter(), time.process_time()
    for request in requests:
        asked = {"prompt": request.prompt, "max_tokens": request.max_tokens, "stop": list(request.stop)}
        texts.append(server.handle_completions({**fixed, **asked})["choices"][0]["text"])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Row("(a) one by one, no reuse", len(requests), wall, cpu, texts)


async def with_reuse(label: str, requests: list[Request], workers: int) -> Row:
    # The first round opens and closes only: what starting costs is taken off.
    start = children_cpu()
    model = LocalModel(workers=workers)
    await model.open()
    await asyncio.gather(*(model.complete(Request(prompt="a", max_tokens=1)) for _ in range(workers)))
    await model.close()
    starting = children_cpu() - start

    start = children_cpu()
    await model.open()
    await asyncio.gather(*(model.complete(Request(prompt="a", max_tokens=1)) for _ in range(workers)))
    wall = time.perf_counter()
    replies = await asyncio.gather(*map(model.complete, requests))
    wall = time.perf_counter() - wall
    await model.close()
    return Row(label, len(requests), wall, children_cpu() - start - starting, [reply.text for reply in replies])


def show(rows: list[Row]) -> None:
    base = rows[0]
    print(f"{'':34}{'items/s':>9}{'ratio':>8}{'CPU s/item':>12}{'ratio':>8}")
    for row in rows:
        rate, cost = row.items / row.wall, row.cpu / row.items
        speed = rate * base.wall / base.items
        print(f"{row.label:34}{rate:9.2f}{speed:8.2f}{cost:12.3f}{base.cpu / base.items / cost:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "passive"

    requests = make_requests(options.items)
    workers = options.workers or LocalModel().workers
    rows = [
        without_reuse(requests),
        asyncio.run(with_reuse("(b) one worker, prefix once", requests, 1)),
        asyncio.run(with_reuse(f"(c) {workers} workers, prefix once", requests, workers)),
        asyncio.run(with_reuse("(c) again, last item first", requests[::-1], workers)),
    ]
    show(rows)
    _, one, many, again = (row.texts for row in rows)
    print(f"texts of (b) and (c) identical: {'yes' if one == many else 'NO'}")
    print(f"texts of both runs of (c) identical: {'yes' if many == again[::-1] else 'NO'}")


if __name__ == "__main__":
    main()
