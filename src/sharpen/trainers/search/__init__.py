"""Pool searches: one loop over a pool of candidates, and policies of a page each that make named trainers of it."""
