"""One case in a process of its own, for programs that watch a process from its start.

    python -m ptxlint.dynamic.runners.once REQUEST ANSWER

REQUEST is a file with a `plan` and a `case`; into ANSWER goes what a child would answer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from .child import staged
from .requests import Plan


def main() -> int:
    """Run it. The exit status says nothing."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with staged(Plan(**request["plan"])) as stage:
        answer = stage.answer({"do": "run", "case": request["case"]})
        Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")
        sys.stdout.flush()
        # What is lost may take long to clean up, or never end.
        os._exit(0)


if __name__ == "__main__":
    main()
