"""`sharpen power` for people: the answer in a sentence, then formula and simulation side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from sharpen.bench.comparison.planning import Pilot, Plan
from sharpen.report.closing import Block, table
from sharpen.report.comparison import number
from sharpen.report.text import NOTHING


def blocks(plans: Sequence[Plan], pilot: Pilot | None, *, paired: bool, asked: str, target: float) -> Iterator[Block]:
    """`asked` is n, effect, power or table."""
    yield Text(sentence(plans[0], paired=paired, asked=asked, target=target))
    if pilot is not None:
        yield Text(f"Pilot: {pilot.name}, {len(pilot.values)} {'pairs' if pilot.paired else 'runs'}.")
        yield from (Text(f"  {note}", style="yellow") for note in pilot.notes)
    made = table(
        "\nspread",
        "",
        "\neffect",
        "\npairs" if paired else "runs in\neach arm",
        "power by\nformula",
        "power by\nsimulation",
    )
    made.columns[1].justify = "right"
    for plan in plans:
        made.add_row(
            plan.which, number(plan.spread), number(plan.effect), NOTHING if plan.n is None else f"{plan.n:,}",
            NOTHING if plan.power is None else f"{plan.power:.3f}",
            NOTHING if plan.simulated is None else f"{plan.simulated:.3f}",
        )  # fmt: skip
    yield made
    if pilot is not None:
        yield Text(
            "The simulation draws from the pilot's own values, whose spread is the one seen: at the n of the upper limit it "
            "shows more power than the formula. Where they differ at the spread seen, the values have another "
            "shape than the formula takes them to have.",
            style="dim",
        )


def sentence(plan: Plan, *, paired: bool, asked: str, target: float) -> str:
    unit = "pairs" if paired else "runs in each arm"
    if asked == "table":
        return f"The smallest effect that n {unit} find with power {target:g}:"
    many = "more than a million" if plan.n is None else f"{plan.n:,}"
    chance = f"{plan.power:.3f}" if asked == "power" else f"{target:g}"
    about = f"(spread {number(plan.spread)}, {plan.which})"
    if asked == "n":
        return f"To find an effect of {number(plan.effect)} with power {chance}: {many} {unit} {about}."
    return f"{many} {unit} find an effect of {number(plan.effect)} with power {chance} {about}."
