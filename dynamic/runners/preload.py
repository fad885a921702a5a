"""Loading, once, what children need: a forked process has it at no cost."""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import suppress
from typing import Final

_TRITON: Final = (
    "triton.backends.nvidia.compiler", "triton.compiler.code_generator",
    "triton.experimental.gluon", "torch._subclasses.schema_check_mode",
)  # fmt: skip
"""What torch and Triton load when they are used for the first time."""
_KERNEL: Final = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry warm(.param .u64 warm_param_0)
.reqntid 32
{
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [warm_param_0];
cvta.to.global.u64 %rd2, %rd1;
st.global.b32 [%rd2], 1;
ret;
}
"""
"""A kernel that is checked and run for what that loads."""


def preload() -> str:
    """Load ptxlint, torch and Triton as far as running operators of Triton needs them; says which
    of the latter cannot be loaded. Nothing of a GPU is touched, and no thread stays."""
    import numpy as np

    import ptxlint
    from ptxlint import cfg, dataflow, engine, launch

    from ..emulator import emulate

    for room in (cfg, dataflow, launch, engine):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)

    emulate(_KERNEL, 1, [np.zeros(1, dtype=np.int32)], sanitize="uninitialised")
    ptxlint.check(_KERNEL)
    try:
        importlib.import_module("torch._dynamo")
        importlib.import_module("triton")
    except ImportError as error:
        return str(error)
    for name in _TRITON:
        with suppress(ImportError):
            importlib.import_module(name)
    _ask_once()
    return ""


def _ask_once() -> None:
    """Ask what Triton keeps for the life of a process: a digest of its own files, and versions of
    the assemblers."""
    with suppress(ImportError, AttributeError, OSError):
        from triton.runtime.cache import triton_key

        triton_key()
    with suppress(ImportError, AttributeError, OSError, TypeError):
        from triton.backends.nvidia.compiler import get_ptxas_version

        for capability in (80, 90):
            get_ptxas_version(capability)


__all__ = ["preload"]
