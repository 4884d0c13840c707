"""Small tasks whose answer is known, for trying trainers out: a program, numbers, a greeting, and aims that pull apart."""
