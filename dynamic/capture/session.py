"""Capturing a script: a child process for each architecture, and the bundle made of what they told.

Nothing here imports Triton or torch.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import ptxlint

from .journal import Account, contents_of
from .manifest import NAME, RECORDINGS, VERSION, dumped
from .output import Output
from .processes import REASON, Strays

TIMEOUT = 1800.0
"""Seconds that a script may take for one architecture, unless told otherwise."""
MOST_A_TENSOR = 1 << 20
"""Bytes of a tensor up to which what it holds is recorded where that is asked for, unless told
otherwise."""
_INTERRUPTED = "interrupted"
_NO_END = "; kernels do not run here, so that waiting for what they write has no end"
_POLL = 0.1


class CaptureError(Exception):
    """A capture that cannot begin; the text says why."""


class Run(NamedTuple):
    """One run of the script."""

    arch: str
    status: str
    message: str
    kernels: int
    launches: int
    seconds: float
    output: str


class Capture(NamedTuple):
    """A finished capture."""

    out: Path
    runs: list[Run]
    problems: list[dict[str, Any]]
    recorded: bool = False
    """True if something is recorded of what tensors held."""

    @property
    def complete(self) -> bool:
        """True if all that was launched is in the bundle."""
        return not self.problems and all(run.status == "complete" for run in self.runs)


Progress = Callable[[str, Account, float], None]
"""Is told an architecture, what is known so far, and the seconds gone."""


def capture(
    command: Sequence[str],
    archs: Sequence[str],
    out: str | os.PathLike[str],
    *,
    module: bool = False,
    autotune: str = "first",
    timeout: float = TIMEOUT,
    force: bool = False,
    gpu: bool | None = None,
    record_inputs: int = 0,
    progress: Progress | None = None,
) -> Capture:
    """Run a script, or a module, and write a bundle. This executes the user's code.

    `command` is the script and its arguments. `gpu` None takes the GPU of this machine for its own
    architecture, False never, True always. `record_inputs` is the number of bytes up to which what
    a tensor holds before a launch is recorded. Raises `CaptureError` when it cannot begin; whatever
    happens later is told in the result, and what was captured until then is written.
    """
    bundle = Path(out)
    _check(command, archs, module)
    own = _own_architecture() if gpu is not False else None
    if gpu and (missing := [arch for arch in archs if arch != own]):
        raise CaptureError(f"this machine has no GPU of {missing[0]}")
    runs: list[dict[str, Any]] = []
    accounts: list[tuple[str, Account]] = []
    interrupted = False
    with _claimed(bundle, force), tempfile.TemporaryDirectory(prefix="ptxlint-capture-") as work:
        for arch in archs:
            (bundle / arch).mkdir(parents=True, exist_ok=True)
            plan: dict[str, Any] = {
                "arch": arch,
                "autotune": autotune,
                "gpu": arch == own,
                "module": module,
                "command": command[0],
                "arguments": list(command[1:]),
                "bundle": str(bundle.resolve()),
                "journal": str(Path(work, f"{arch}.jsonl")),
                "record_inputs": record_inputs,
            }
            account = Account(Path(work, f"{arch}.jsonl"))
            run = _run(plan, account, Path(work, f"{arch}.json"), timeout, progress or _silent)
            runs.append(run)
            accounts.append((arch, account))
            interrupted = run["message"] == _INTERRUPTED
            if interrupted:
                break
        content = _manifest(list(command), module, runs, accounts)
        if _pack(bundle, [contents_of(Path(work, f"{arch}.jsonl")) for arch, _ in accounts]):
            content["recordings"] = RECORDINGS
        (bundle / NAME).write_text(dumped(content), encoding="utf-8")
    if interrupted:
        raise KeyboardInterrupt
    return Capture(bundle, _summary(runs, accounts), content["problems"], "recordings" in content)


def _silent(arch: str, account: Account, seconds: float) -> None:
    return


def _check(command: Sequence[str], archs: Sequence[str], module: bool) -> None:
    """Refuse what cannot work before anything is run."""
    from .devices import device_of

    if not command:
        raise CaptureError("nothing to run")
    if not module and not Path(command[0]).is_file():
        raise CaptureError(f"{command[0]}: no such file")
    if not archs:
        raise CaptureError("no architecture: --arch sm_90")
    for arch in archs:
        try:
            device = device_of(arch)
        except ValueError as error:
            raise CaptureError(str(error)) from None
        if device.arch != arch:
            raise CaptureError(f"{arch}: write {device.arch}; Triton chooses the variant itself")


@contextmanager
def _claimed(bundle: Path, force: bool) -> Iterator[None]:
    """A directory to write to. What is there is left alone, except an older bundle with `force`."""
    if bundle.exists():
        if not bundle.is_dir():
            raise CaptureError(f"{bundle} is no directory")
        if any(bundle.iterdir()):
            if not force:
                raise CaptureError(f"{bundle} is not empty; --force replaces a bundle")
            _remove_bundle(bundle)
    try:
        bundle.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(f"cannot make {bundle}: {error.strerror or error}") from None
    yield


def _remove_bundle(bundle: Path) -> None:
    """Remove the files of an older bundle, and no others."""
    manifest = bundle / NAME
    if not manifest.exists():
        raise CaptureError(f"{bundle} is not empty and holds no {NAME}: it is no bundle to replace")
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        kernels = content["kernels"]
        files = [k[part] for k in kernels for part in ("ptx", "cubin", "ttir", "metadata")]
        files += [run["output"] for run in content["runs"]]
        files += [content["recordings"]] if "recordings" in content else []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CaptureError(f"{manifest} is no manifest of a bundle: {error}") from None
    top = bundle.resolve()
    for name in files:
        path = (top / name).resolve()
        if path.is_relative_to(top):
            path.unlink(missing_ok=True)
    manifest.unlink()


def _own_architecture() -> str | None:
    """The architecture of this machine's first GPU; None without one."""
    ask = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    first = answer.strip().splitlines()[:1]
    return f"sm_{first[0].strip().replace('.', '')}" if first else None


def _run(
    plan: dict[str, Any], account: Account, plan_path: Path, timeout: float, progress: Progress
) -> dict[str, Any]:
    """Run the child to its end, or to the end of its time. The run as the manifest has it."""
    arch = plan["arch"]
    plan_path.write_text(json.dumps(plan), encoding="utf-8")
    started = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "ptxlint.dynamic.capture.child", str(plan_path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(plan),
        start_new_session=True,
    )
    assert child.stdout is not None
    output = Output(child.stdout)
    strays = Strays(child.pid)
    stopped = ""
    try:
        while child.poll() is None and not stopped:
            account.update()
            strays.look()
            seconds = time.monotonic() - started
            progress(arch, account, seconds)
            if seconds > timeout:
                stopped = f"stopped after {timeout:g} s"
            else:
                time.sleep(_POLL)
    except KeyboardInterrupt:
        stopped = _INTERRUPTED
    # Whatever the script started and left behind goes with it.
    _end(child)
    account.update()
    for command, count in strays.found.items():
        account.troubles[command, REASON] = count
    progress(arch, account, time.monotonic() - started)
    output.end()
    Path(plan["bundle"], arch, "output.txt").write_bytes(output.kept())
    status, message = _outcome(account, child.returncode, stopped)
    return {
        "arch": arch,
        "device": account.started.get("device", "none"),
        "triton": account.started.get("triton", ""),
        "torch": account.started.get("torch", ""),
        "status": status,
        "message": message,
        "seconds": round(time.monotonic() - started, 2),
        "output": f"{arch}/output.txt",
    }


def _environment(plan: dict[str, Any]) -> dict[str, str]:
    """The child's environment."""
    environment = dict(os.environ)
    # An interpreted kernel is not compiled.
    environment.pop("TRITON_INTERPRET", None)
    environment["PYTHONUNBUFFERED"] = "1"
    # Kernels that torch generates are compiled in this process, and launched by Triton.
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    environment["TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER"] = "0"
    if not plan["gpu"]:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and all of its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _outcome(account: Account, returncode: int, stopped: str) -> tuple[str, str]:
    """Status and message of a run."""
    if account.ended is not None:
        return account.ended["status"], account.ended["message"]
    if stopped == _INTERRUPTED:
        return "failed", stopped
    if stopped:
        doing = f", while compiling {account.compiling}" if account.compiling else ""
        recorded = account.started.get("device", "none") == "none"
        return "timeout", f"{stopped}{doing}{_NO_END if recorded else ''}"
    if returncode < 0:
        return "crashed", f"ended by {signal.Signals(-returncode).name}"
    if not account.started:
        return "failed", f"the recording process did not start (exit status {returncode})"
    return "exited", f"the script ended the process with status {returncode} before its end"


def _manifest(
    command: list[str],
    module: bool,
    runs: list[dict[str, Any]],
    accounts: list[tuple[str, Account]],
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "tool": f"ptxlint {ptxlint.__version__}",
        "command": ["-m", *command] if module else command,
        "runs": runs,
        "kernels": [kernel for _, a in accounts for kernel in a.kernels.values()],
        "problems": [
            {"arch": arch, "what": what, "reason": reason, "count": count}
            for arch, a in accounts
            for (what, reason), count in a.troubles.items()
        ],
    }


def _pack(bundle: Path, folders: list[Path]) -> bool:
    """Put what the children recorded into one file, alike bytes once; True if there was any."""
    import numpy as np

    files = [file for folder in folders for file in sorted(folder.glob("*"))]
    found = {file.name: file for file in files if not file.suffix}
    if found:
        arrays: Any = {
            key: np.frombuffer(file.read_bytes(), dtype=np.uint8) for key, file in found.items()
        }
        np.savez_compressed(bundle / RECORDINGS, **arrays)
    return bool(found)


def _summary(runs: list[dict[str, Any]], accounts: list[tuple[str, Account]]) -> list[Run]:
    return [
        Run(
            arch,
            run["status"],
            run["message"],
            len(account.kernels),
            sum(launch["count"] for k in account.kernels.values() for launch in k["launches"]),
            run["seconds"],
            run["output"],
        )
        for run, (arch, account) in zip(runs, accounts, strict=True)
    ]
