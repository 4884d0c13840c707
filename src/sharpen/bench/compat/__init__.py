"""The files that users of SkillOpt look for, derived from a job's events: `sharpen export JOB --as compat`.

`files` is a function from what is known of a job to the texts of the files, so it works for a running, a crashed and a
finished job alike. Names and fields are the classic ones where we have the value; what we know beyond them stands under
`sharpen`. What we do not have is null or left out: nothing is made up. `docs/coming-from.md` says which and why.

`source` is what there is to read, `story` cuts the events into steps and epochs, `known` keeps what was measured on val,
`texts` finds the texts of candidates, `rollouts` writes attempts, `words` holds the classic names; `steps` (with `step` and
`records`), `epochs` and `summary` write the files, and `telling` goes through the story once.
"""

from __future__ import annotations

from sharpen.bench.compat.source import Source, open_source
from sharpen.bench.compat.telling import files

__all__ = ["Source", "files", "open_source"]
