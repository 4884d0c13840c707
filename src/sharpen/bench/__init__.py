"""Configuration, runs and their files: what stands between a command line and the jobs it stands for."""
