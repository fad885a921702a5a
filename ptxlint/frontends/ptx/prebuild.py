"""Write the parser data that ships with the package: Lark's tables and common templates.

Run `python -m ptxlint.frontends.ptx.prebuild` after a change of `grammar/ptx.lark`; with
`--check` it only tells whether the files are up to date. Both files are JSON; neither is needed
for a right answer, only for a quick one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ptxlint.frontends.ptx import memo, parse, reference

ROOT = Path(__file__).resolve().parents[3]
GRAMMAR = ROOT / "grammar"
FIXTURES = ROOT / "fixtures"


def build_templates(fixtures: Path) -> str:
    """JSON text of the templates of all statements of the valid fixtures, sorted by key."""
    memo.reset_memo(shipped=False)
    for path in sorted(fixtures.rglob("*.ptx")):
        if "invalid" not in path.parts:
            with path.open(encoding="utf-8", newline="") as file:
                parse(file.read(), path.name)
    templates = {key: [t.kind, t.payload] for key, t in memo.known_templates().items()}
    memo.reset_memo()
    lines = [
        f"{json.dumps(key)}:{json.dumps(templates[key], separators=(',', ':'))}"
        for key in sorted(templates)
    ]
    stamp = json.dumps(memo.grammar_stamp())
    return f'{{"stamp":{stamp},"templates":{{\n' + ",\n".join(lines) + "\n}}\n"


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` tell whether they fit the grammar; 1 if they do not.

    Lark numbers its states differently from run to run, so tables are compared by their stamp.
    """
    tables, templates = GRAMMAR / "ptx.tables.json", GRAMMAR / "ptx.templates.json"
    stale = []
    if not tables.exists() or json.loads(tables.read_text("utf-8"))["stamp"] != reference.stamp():
        stale.append((tables, reference.build_tables()))
    wanted = build_templates(FIXTURES)
    if not templates.exists() or templates.read_text("utf-8") != wanted:
        stale.append((templates, wanted))
    if "--check" in arguments:
        for path, _ in stale:
            print(f"{path.name} is out of date: run `make tables`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
