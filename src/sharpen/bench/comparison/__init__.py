"""Arms against each other: which number counts, who is paired with whom, what it shows and what else differs. Pure.

`matchups` says who meets whom and who has nothing to show, `measure` takes one number from a run, `pairing` puts runs side
by side, `rows` does the statistics of a task (`times` where runs race to a value, `references` on a scale), `pooling` those
over tasks, `assembly` a whole comparison, `aggregated` each arm in a few numbers, `differences` what else is not the same.
"""
