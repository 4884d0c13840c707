"""Algorithm design: tasks whose candidate is a program, tried on instances of a classic problem in the sandbox. No model."""
