"""ReflACT: rollouts, reflection and bounded edits behind a validation gate. `loop.py` tells it; a file per stage does it."""
