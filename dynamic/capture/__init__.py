"""Capturing Triton kernels and their launches, without a GPU or with one.

`capture` runs a script in child processes and writes a bundle (docs/bundle.md). `recording` watches
code of the current process. Both execute the user's code.
"""

from __future__ import annotations

from .recording import Options, Recording, recording
from .session import Capture, CaptureError, capture

__all__ = ["Capture", "CaptureError", "Options", "Recording", "capture", "recording"]
