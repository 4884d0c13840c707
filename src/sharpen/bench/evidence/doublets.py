"""What to say where a run has a value twice: the rows may be of two tasks, two runs or two steps, and nothing in them says
which. Readers of tables find the two rows; here is what would tell them apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sharpen.core.errors import UsageError


def twice(
    place: str, who: str, what: str, before: str, columns: Collection[str], unused: Sequence[str], *, stepped: bool
) -> UsageError:
    """The complaint. `unused` are columns that differ between the two rows, and that the reader has no use for."""
    free = next((name for name in ("task", "run") if name not in columns), None)
    needs = ["several tasks need a column task"] if "task" not in columns else []
    if unused and free:
        are, it = ("column {} is", "it") if len(unused) == 1 else ("columns {} are", "one")
        needs = [f"{are.format(', '.join(unused))} not used: if {it} tells {free}s apart, name it {free}"]
    if not stepped:
        needs.append("the steps of a curve need a column step")
    needs.append("another run needs a name or a seed of its own")
    return UsageError(f"{place}: {who} has {what} twice, before in {before}; {'; '.join(needs)}")


def whose(arm: str, task: str, run: str) -> str:
    """`seed 3 of ppo on Pong`, or less where a row does not say as much."""
    return run + (f" of {arm}" if arm else "") + (f" on {task}" if task else "")
