"""Algorithms that turn a candidate into a better one. `base.py` holds the contract, `registry.py` the names."""
