"""Arms against each other: which number counts, who is paired with whom, what it shows and what else differs. Pure.

`measure` takes one number from a run, `pairing` puts runs side by side, `rows` does the statistics of a task, `assembly` a
whole comparison, `differences` tells what else is not the same, `matchups` who meets whom.
"""
