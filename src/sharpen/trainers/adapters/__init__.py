"""Optimizers of other packages as trainers: GEPA's own package, DSPy's optimizers, Trace's optimizers.

Each package is an extra and is imported when its trainer is used. It finds candidates; everything it does goes through the
job: rollouts, questions, randomness, what is kept and what is told. So its trainers obey the same budget to the call, are
resumed by replay, and end with the same closing measurement as every other trainer.
"""
