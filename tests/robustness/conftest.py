"""What the robustness suites share: a deadline, and a file that must be checked all the same."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

import pytest

from ptxlint import SourceText

GOOD = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry good(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [out];
    mov.f32 %f1, 0f3F800000;
    cvt.f64.f32 %rd2, %f1;
    mul.f64 %rd2, %rd2, %rd2;
    cvt.rn.f32.f64 %f2, %rd2;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""
"""A kernel with one finding, NUM407 at line 11."""


class TooSlow(BaseException):
    """No `Exception`: the engine must not take it for a crash of a rule."""


@contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"not answered within {seconds} s")

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


@pytest.fixture(scope="session")
def deadline() -> Callable[[int], AbstractContextManager[None]]:
    """`with deadline(20):` fails after 20 s of processor time, in a regular expression too."""
    return _deadline


@pytest.fixture(scope="session")
def good() -> SourceText:
    """A text with exactly one finding: NUM407 at line 11."""
    return SourceText(GOOD, "good.ptx")


@pytest.fixture(scope="session")
def run_slow(request: pytest.FixtureRequest) -> bool:
    """True if whole suites are asked for, False if a sample is enough."""
    return bool(request.config.getoption("--run-slow"))
