"""Summaries, intervals and paired comparisons of scores. Knows numbers only: nothing of jobs, tasks or models."""
