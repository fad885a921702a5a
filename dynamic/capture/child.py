"""The child process of a capture: runs the user's script once, for one architecture.

    python -m ptxlint.dynamic.capture.child PLAN.json

The plan says what to run, and where the journal and the bundle are.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from .journal import Journal

_HINT = "; kernels do not run here: what they should have written is zeros"


def main() -> int:
    """Run the plan. The journal tells how it went; the exit status says nothing."""
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    journal = Journal(Path(plan["journal"]), Path(plan["bundle"]))
    process = os.getpid()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    status, message = _run(plan, journal)
    if os.getpid() != process:
        # A forked child came back out of the script.
        os._exit(0)
    journal.flush()
    journal.write("end", status=status, message=message)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and handlers of the script may keep a process alive for ever.
    os._exit(0)


def _end_with(parent: int) -> None:
    """End this process and what it started as soon as the parent is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _run(plan: dict[str, Any], journal: Journal) -> tuple[str, str]:
    """Status and message."""
    from .recording import Options, recording

    options = Options(
        autotune=plan["autotune"], gpu=plan["gpu"], record_inputs=plan["record_inputs"]
    )
    try:
        import torch
        import triton
    except ImportError as error:
        return "failed", f"capturing needs Triton and torch: {error}"
    journal.write(
        "start", triton=triton.__version__, torch=torch.__version__, device=_device(plan["gpu"])
    )
    hint = "" if plan["gpu"] else _HINT
    try:
        with recording(plan["arch"], options, journal):
            _script(plan)
    except SystemExit as left:
        if left.code in (None, 0):
            return "complete", ""
        code = left.code if isinstance(left.code, int) else f"{left.code!s:.200}"
        return "exited", f"the script left with {code}{_at(left)}"
    except KeyboardInterrupt:
        return "failed", "interrupted"
    except BaseException as error:
        traceback.print_exc()
        return "failed", f"{_said(error)}{_at(error)}{hint}"
    return "complete", ""


def _device(gpu: bool) -> str:
    if not gpu:
        return "none"
    import torch

    return str(torch.cuda.get_device_name())


def _script(plan: dict[str, Any]) -> None:
    """Run it as `python SCRIPT` or `python -m MODULE` would."""
    name, arguments = plan["command"], plan["arguments"]
    if plan["module"]:
        sys.argv = [name, *arguments]
        sys.path[0] = os.getcwd()
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    sys.argv = [name, *arguments]
    sys.path[0] = str(Path(name).resolve().parent)
    runpy.run_path(name, run_name="__main__")


def _said(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _at(error: BaseException) -> str:
    """The last line of code outside ptxlint, torch and Triton that it came through."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if root not in ("ptxlint", "torch", "triton", "runpy"):
            path = frame.f_code.co_filename
            if not path.startswith("<"):
                place = f" ({path}:{line})"
    return place


if __name__ == "__main__":
    main()
