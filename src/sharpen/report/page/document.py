"""The page itself, and the files it and its pictures are written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import sharpen
from sharpen.core.redact import redact
from sharpen.files import write_atomic
from sharpen.report.page import files, html, job_plots, painted, plots, svg
from sharpen.report.page.gather import Gathered
from sharpen.report.page.marks import Picture
from sharpen.report.page.plots import file_name
from sharpen.report.page.sections import named, sections

_STYLE = """
body{font:15px/1.55 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1.2rem;color:var(--ink);
background:var(--paper)}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2.4rem 0 .6rem;padding-top:.6rem;
border-top:1px solid var(--grid)}h3{font-size:1rem;margin:1.4rem 0 .4rem}
nav{margin:.8rem 0 0;line-height:2}nav a{margin-right:1rem;white-space:nowrap}a{color:var(--c0)}
.verdict{font-size:1.08rem;border-left:4px solid var(--c4);padding-left:.8rem}
.verdict.better{border-color:var(--c0)}.verdict.worse{border-color:var(--c1)}
.wide{overflow-x:auto;margin:.6rem 0}table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.22rem 1rem .22rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
th{font-weight:600;color:var(--dim)}th.n,td.n{text-align:right;white-space:nowrap}
figure{margin:.8rem 0 1.4rem}figure svg{width:100%;height:auto;display:block}
figcaption,.quiet{color:var(--dim);font-size:.88rem}
pre{background:color-mix(in srgb,var(--grid) 35%,transparent);padding:.7rem;overflow:auto;white-space:pre-wrap;
overflow-wrap:anywhere;font-size:.85rem;margin:.4rem 0}
.lines{white-space:pre-wrap}.came{color:var(--c0)}.went{color:var(--c1);text-decoration:line-through}.strong{font-weight:700}
p.doubt,span.doubt{color:var(--c1)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:0 1.5rem}
p,li{max-width:62rem}p,li,td,figcaption{overflow-wrap:break-word}
details{margin:.35rem 0}summary{cursor:pointer}details details{margin-left:.3rem}ol.lineage{padding-left:1.6rem}
footer{margin-top:3rem;color:var(--dim);font-size:.85rem}
@media(max-width:40rem){td:not(.n):not(:first-child){min-width:8rem}}
@media print{details>*{display:block}nav{display:none}}
"""


def page(found: Gathered) -> str:
    """One page that refers to nothing outside of itself."""
    told = [(name, body) for name, body in sections(found) if body]
    links = " ".join(f'<a href="#{file_name(name)}">{html.safe(name)}</a>' for name, _ in told)
    body = "".join(
        f'<section id="{file_name(name)}"><h2>{html.safe(name)}</h2>{part}</section>\n' for name, part in told
    )
    about = found.jobs[0].title if len(found.jobs) == 1 else _matrix(found)
    return redact(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{html.POLICY}"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.safe(found.name)}</title><style>{svg.variables()}{_STYLE}</style></head>\n<body>\n"
        f"<h1>{html.safe(found.name)}</h1>{html.paragraph(about, 'quiet')}<nav>{links}</nav>\n{body}"
        f"<footer>Made by sharpen {html.safe(sharpen.__version__)} from the events of the run.</footer>\n</body></html>\n"
    )


def _matrix(found: Gathered) -> str:
    seeds = len({row["seed"] for row in found.rows})
    return f"Tasks: {named(found.tasks)}. Arms: {named([arm.name for arm in found.arms])}. Seeds: {seeds}."


def pictures(found: Gathered) -> Iterator[Picture]:
    """Every picture of the page that there is something for; of a study those of the whole."""
    if len(found.jobs) == 1:
        job = found.jobs[0]
        drawn = [job_plots.learning(job), job_plots.by_type(job), job_plots.evidence(job), job_plots.items(job)]
        yield from (one for one in (*drawn, job_plots.spend(job)) if one is not None)
        return
    yield from plots.standings(found)
    whole = (plots.effects(found.compared, found.arms), plots.performance(found), plots.spend(found))
    yield from (one for one in whole if one is not None)
    yield from plots.learning(found)
    yield from plots.shapes(found)
    yield from plots.by_type(found)


def write_page(found: Gathered, path: Path) -> None:
    write_atomic(path, page(found))


def _free(path: Path, taken: Sequence[Path]) -> Path:
    """Two tasks may have names that come to the same file."""
    names = (path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def write_pictures(found: Gathered, folder: Path) -> list[Path]:
    """Each picture as SVG, and as PNG where matplotlib is there."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = (".svg", ".png") if painted.can_paint() else (".svg",)
    made: list[Path] = []
    for picture in pictures(found):
        path = _free(folder / f"{picture.name}.svg", made)
        for kind in kinds:
            files.save(picture, path.with_suffix(kind))
            made.append(path.with_suffix(kind))
    return made
