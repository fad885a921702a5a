"""Headers that the architecture tests compare with."""

import importlib.util
from pathlib import Path

import pytest


def _nvidia_backend() -> Path | None:
    """The folder of Triton's NVIDIA backend, found without importing Triton."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "backends" / "nvidia"


@pytest.fixture(scope="session")
def cuda_include() -> Path:
    """The folder with the CUDA headers that Triton ships."""
    backend = _nvidia_backend()
    if backend is None:
        pytest.skip("no CUDA headers: install ptxlint[triton]")
    return backend / "include"
