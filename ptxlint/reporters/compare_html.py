"""A comparison over architectures as one HTML page, which asks for nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import Final

from ptxlint.comparison.architectures import ArchitectureReport, Family
from ptxlint.comparison.portrait import Portrait
from ptxlint.reporters.cfg_svg import render_cfg_svg
from ptxlint.reporters.compare_words import partings, rows, summary, surprise, title

_STYLE: Final = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; color: #223; background: #fff }
h2 { margin: 2.2rem 0 .4rem; font-size: 1.1rem }
table { border-collapse: collapse; margin: .6rem 0 }
td, th { border-bottom: 1px solid #d8dce6; padding: .15rem .7rem .15rem 0; text-align: left;
  vertical-align: top }
th.part { padding-top: .7rem; color: #667 }
tr.odd td, tr.odd th { background: #fff6dc }
ul.surprises li { color: #9a3b00 }
.graphs { display: flex; gap: 1rem; overflow: auto; align-items: flex-start; max-height: 80vh;
  border: 1px solid #d8dce6 }
figure { margin: 0 }
figcaption { position: sticky; top: 0; background: #eef1f7; padding: .2rem .6rem }
"""


def render_html(report: ArchitectureReport) -> str:
    """The page: surprises, a table and the graphs of each kernel."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>ptxlint compare</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>ptxlint compare</h1>",
        f"<p>{escape(summary(report))}</p>",
    ]
    for number, family in enumerate(report.families):
        parts += _family(family, number, is_open=len(report.families) == 1)
    parts += _list("On one architecture alone", [f"{k.name} ({k.arch})" for k in report.alone])
    parts += _list("Not compared", list(report.faults))
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _family(family: Family, number: int, is_open: bool) -> list[str]:
    parts = [f"<h2>{escape(title(family))}</h2>"]
    if family.surprises:
        items = "".join(f"<li>{escape(surprise(s))}</li>" for s in family.surprises)
        parts.append(f'<ul class="surprises">{items}</ul>')
    opened = " open" if is_open else ""
    parts += [f"<details{opened}><summary>Table</summary>", *_table(family), "</details>"]
    parts += _list("", [*partings(family), *family.notes])
    parts.append(f"<details{opened}><summary>Control flow</summary><div class='graphs'>")
    for at, (archs, portrait) in enumerate(_drawn(family)):
        parts.append(f"<figure><figcaption>{escape(', '.join(archs))}</figcaption>")
        parts += [render_cfg_svg(portrait.facts, f"tip-{number}-{at}"), "</figure>"]
    return [*parts, "</div></details>"]


def _table(family: Family) -> list[str]:
    head = "".join(f"<th>{escape(arch)}</th>" for arch in family.archs)
    parts = [f"<table><tr><th></th>{head}</tr>"]
    current = ""
    for row in rows(family):
        if row.part != current:
            current = row.part
            width = len(family.archs) + 1
            parts.append(f'<tr><th class="part" colspan="{width}">{escape(current)}</th></tr>')
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
        kind = "" if row.is_even else ' class="odd"'
        parts.append(f"<tr{kind}><th>{escape(row.name)}</th>{cells}</tr>")
    return [*parts, "</table>"]


def _drawn(family: Family) -> list[tuple[list[str], Portrait]]:
    """What is drawn: of architectures with the same code one graph."""
    found: dict[str, tuple[list[str], Portrait]] = {}
    for p in family.portraits:
        found.setdefault(p.kernel.identity, ([], p))[0].append(p.arch)
    return list(found.values())


def _list(heading: str, items: list[str]) -> list[str]:
    if not items:
        return []
    told = "".join(f"<li>{escape(item)}</li>" for item in items)
    return [*([f"<h2>{escape(heading)}</h2>"] if heading else []), f"<ul>{told}</ul>"]


__all__ = ["render_html"]
