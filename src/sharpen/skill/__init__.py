"""A Markdown skill document as something that can be read, edited within bounds, and checked for leaks."""
