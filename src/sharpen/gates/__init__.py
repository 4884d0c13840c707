"""Who may replace the current candidate: pure decisions from paired outcomes. `base.py` holds the contract."""
