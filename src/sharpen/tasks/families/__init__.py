"""The built-in text tasks, one file each. `sharpen.tasks.registry` names them; none is imported before it is asked for."""
