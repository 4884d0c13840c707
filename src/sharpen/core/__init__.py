"""The nouns every other room speaks in: tasks, items, candidates, outcomes, messages, errors, digests, randomness.

Nothing here reads a clock, touches a file or imports a third-party package.
"""
