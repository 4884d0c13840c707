"""What a job is and how it runs: the handle a trainer gets, its story, its budget, and where rollouts are carried out."""
