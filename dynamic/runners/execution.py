"""A case of an operator, run: all that operators do is an outcome, but for ending the process."""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final

from ..cases.arrays import digest
from ..cases.case import Case
from ..operators.spec import Operator, SpecError
from ..oracle.compare import ShapesDisagreeError
from ..oracle.reference import ReferenceFailedError
from .case_run import CaseRun, Referring
from .checking import CHECKED
from .manner import DeviceError, HungError, NotRunError
from .outcome import Outcome, Status
from .returned import NoArrayError
from .runner import Output, Runner

_TOO_LARGE: Final = "the operator asks for more memory than there is"
_ALLOCATOR: Final = "DefaultCPUAllocator: can't allocate memory"
"""What torch says on the CPU, in a RuntimeError."""
_LIBRARIES: Final = ("ptxlint", "torch", "triton", "numpy")


def run_case(
    operator: Operator,
    runner: Runner,
    case: Case,
    referring: Referring = nullcontext,
    begun: Callable[[str], None] = lambda inputs_key: None,
) -> Outcome:
    """Run a case and look at it, check after check in the case's order, up to the first that fails.
    The reference runs inside `referring`; `begun` is told the digest of the inputs.

    Raises `DeviceError`, behind which nothing more can be run in this process.
    """
    started = time.perf_counter()
    try:
        run = CaseRun(operator, runner, case, referring)
    except SpecError as error:
        return Outcome(case, "undecided", "case", str(error))
    inputs_key = digest(run.arguments)
    begun(inputs_key)
    status, kind, reason = _checked(run)
    return Outcome(
        case,
        status,
        kind,
        reason,
        run.compared,
        run.findings,
        len(run.launched),
        tuple(run.launched),
        time.perf_counter() - started,
        outputs_key(run.outputs) if "outputs" in vars(run) else "",
        inputs_key,
        launches_key(run.launches),
    )


def _checked(run: CaseRun) -> tuple[Status, str, str]:
    """Status, kind and reason."""
    try:
        _ = run.outputs
        for check in run.case.checks:
            said = CHECKED[check](run)
            if said:
                return "fail", check, said
    except ReferenceFailedError as error:
        return "undecided", "reference raises", f"the reference {error}"
    except (ShapesDisagreeError, NoArrayError) as error:
        return "undecided", "shapes", str(error)
    except SpecError as error:
        return "undecided", "case", str(error)
    except NotRunError as error:
        return "undecided", "unsupported", str(error)
    except HungError as error:
        return "fail", "hang", str(error)
    except MemoryError:
        return "fail", "memory", _TOO_LARGE
    except SystemExit as left:
        return "fail", "exit", f"the operator ended the process: exit({left.code!r}){_at(left)}"
    except DeviceError:
        raise
    except Exception as error:
        if _ALLOCATOR in str(error):
            return "fail", "memory", _TOO_LARGE
        return "fail", "raises", f"the operator raises {_said(error)}{_at(error)}"
    return "pass", "", ""


def launches_key(launches: Sequence[str]) -> str:
    """Alike for the same launches in the same order; empty if there are none."""
    return hashlib.sha256("\n".join(launches).encode()).hexdigest()[:16] if launches else ""


def outputs_key(outputs: tuple[Output, ...]) -> str:
    """Alike for outputs that are the same to the bit; empty if there are none."""
    if not outputs:
        return ""
    told = hashlib.sha256()
    for output in outputs:
        told.update(repr((output.name, output.dtype, output.elements.shape)).encode())
        told.update(output.elements.tobytes())
    return told.hexdigest()[:16]


def _said(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    # Triton quotes the source first, and then says what is wrong with it.
    text = text if len(text) <= 300 else f"{text[:100]} … {text[-200:]}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _at(error: BaseException) -> str:
    """The last line of code outside libraries that an exception came through."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        path = frame.f_code.co_filename
        is_library = root in _LIBRARIES or root in sys.stdlib_module_names
        if not is_library and not path.startswith("<"):
            place = f" ({path}:{line})"
    return place


__all__ = ["launches_key", "outputs_key", "run_case"]
