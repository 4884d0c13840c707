"""What is sent into the sandboxes of a program and of its tests. These files need the standard library alone."""
