"""How to talk to a model: one small protocol (`base.py`), one file per kind of endpoint."""
