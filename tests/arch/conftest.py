"""Assemblers and headers that the architecture tests compare with."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Assembler(NamedTuple):
    """One ptxas with the newest PTX version and the targets it knows."""

    path: str
    version: str
    targets: tuple[str, ...]

    def errors(self, ptx: str, target: str, scratch: Path) -> list[tuple[int, str]]:
        """(line, message) of every error; empty when the module assembles."""
        source = scratch / "module.ptx"
        source.write_text(ptx)
        done = subprocess.run(
            [self.path, "-arch", target, str(source), "-o", str(scratch / "module.cubin")],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode == 0:
            return []
        found = re.findall(r"(?:, line (\d+); )?(?:error|fatal) *: (.*)", done.stderr)
        return [(int(line or 0), message) for line, message in found]


def _nvidia_backend() -> Path | None:
    """The folder of Triton's NVIDIA backend, found without importing Triton."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "backends" / "nvidia"


def _assembler(path: str) -> Assembler:
    text = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=60).stdout
    option = text[text.index("--gpu-name") : text.index("Default value", text.index("--gpu-name"))]
    targets = tuple(sorted(set(re.findall(r"'(sm_\d+[af]?)'", option))))
    probe = subprocess.run(
        [path, "--input-as-string", ".version 99.0\n.target sm_75\n", "-o", "/dev/null"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    newest = re.search(r"current version is '([\d.]+)'", probe.stderr)
    assert newest is not None, probe.stderr
    return Assembler(path, newest.group(1), targets)


@pytest.fixture(scope="session")
def assemblers() -> list[Assembler]:
    """Every ptxas at hand: Triton's and the one on the PATH."""
    backend = _nvidia_backend()
    paths = [] if backend is None else sorted(map(str, (backend / "bin").glob("ptxas*")))
    on_path = shutil.which("ptxas")
    found = [_assembler(path) for path in [*paths, *([on_path] if on_path else [])]]
    if not found:
        pytest.skip("no ptxas: install ptxlint[triton]")
    return found


@pytest.fixture(scope="session")
def cuda_include() -> Path:
    """The folder with the CUDA headers that Triton ships."""
    backend = _nvidia_backend()
    if backend is None:
        pytest.skip("no CUDA headers: install ptxlint[triton]")
    return backend / "include"
