"""Options and markers of the whole suite, and the assemblers that are its oracle."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

settings.register_profile("sample", max_examples=60)
settings.register_profile("whole", max_examples=400)


def pytest_configure(config: pytest.Config) -> None:
    """How many examples properties have that do not say it themselves."""
    settings.load_profile("whole" if config.getoption("--run-slow") else "sample")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--run-slow`: what `make test-all` adds to `make test`; `--update-cases`: accept what is."""
    parser.addoption(
        "--run-slow",
        action="store_true",
        default=False,
        help="run the tests marked slow too",
    )
    parser.addoption(
        "--update-cases",
        action="store_true",
        default=False,
        help="rewrite expected output in tests/*/cases and on the pages; read the difference",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests unless they are asked for."""
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow; runs with --run-slow (make test-all)")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


class Assembler(NamedTuple):
    """One ptxas with the newest PTX version and the targets it knows."""

    path: str
    version: str
    targets: tuple[str, ...]

    def errors(self, ptx: str, target: str, scratch: Path) -> list[tuple[int, str]]:
        """(line, message) of every error; empty when the module assembles."""
        source = scratch / "module.ptx"
        source.write_bytes(ptx.encode())
        done = subprocess.run(
            [self.path, "-O0", "-arch", target, str(source), "-o", str(scratch / "module.cubin")],
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
