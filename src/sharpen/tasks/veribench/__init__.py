"""Lean 4 as a task: a model writes a Lean file, and Lean itself checks it. `task.py` is the task, `items.py` the statements
that come with it, `rows.py` reads published rows, `checking.py` says what a file must hold to and what Lean's verdict means,
`toolchain.py` finds Lean and runs it in the sandbox.
"""
