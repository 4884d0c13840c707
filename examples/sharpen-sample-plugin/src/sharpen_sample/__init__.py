"""One task, one trainer, one model, one gate and one proposer for sharpen, each in a file of its own."""
