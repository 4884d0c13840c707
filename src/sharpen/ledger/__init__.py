"""Pay once: the keys that say what is the same (`keys.py`) and the SQLite store of all that was paid for (`store.py`)."""
