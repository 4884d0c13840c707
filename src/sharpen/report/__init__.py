"""What a job came to, for people: texts and tables made from events and results, and from nothing else."""
