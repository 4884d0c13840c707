"""Trainers of policies: five algorithms of stable-baselines3 over one loop. Needs the extra `rl` once one is used."""
