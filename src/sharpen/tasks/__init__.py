"""Built-in tasks, tasks from data files, how they are split, rendered for a model and scored.

Nothing is imported here: `sharpen.tasks.registry.get` finds a task by name or path, and loads only that one.
"""
