"""What the machine has."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

_WAIT: Final = 20.0


def gpus() -> tuple[int, ...]:
    """Numbers of the GPUs that processes of this one may use, as CUDA counts them; none without
    nvidia-smi."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        told = subprocess.run(
            [program, "--list-gpus"], capture_output=True, text=True, timeout=_WAIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    count = sum(line.startswith("GPU ") for line in told.stdout.splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        count = min(count, len([word for word in visible.split(",") if word.strip()]))
    return tuple(range(count)) if told.returncode == 0 else ()


__all__ = ["gpus"]
