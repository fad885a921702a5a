"""What a defect is: a right kernel, what is changed in it, and what must be said of it then.

Written kernels share a beginning, so that their bodies show what matters:

| register | |
|---|---|
| `%r0`, `%r1`, `%r2` | thread in the CTA, CTA, thread in the grid |
| `%rd0`, `%rd1`, … | parameters that are pointers, by the place of the parameter |
| `%rd10`, `%rd11`, … | of these, the element of 4 bytes that is this thread's in the grid |
| `%r10`, `%r11`, … | parameters that are 32-bit integers |

A line that ends in `//~ EMU901 thread 50` must be reported when the defect is in, with thread 50 of
the first program as the first that does wrong, `thread 0 of program 1` likewise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.tensor_map import TensorMap

ROOT = Path(__file__).resolve().parents[2]
_MARK = re.compile(r"//~ (.*)$")
_EACH = re.compile(r"(EMU\d+) thread (\d+)(?: of program (\d+))?(?:, |$)")


class Tensor(NamedTuple):
    """A pointer to memory of its own, of exactly the size of the values.

    `state` is `filled`; `blank`: nothing was written there, only the size of the values counts;
    `read_only`: the kernel may not write there; or `freed` before the launch. The pointer leads
    `first` bytes into the memory.
    """

    values: NDArray[Any]
    state: str = "filled"
    first: int = 0


class Map(NamedTuple):
    """A tensor map of another argument, by its place, or of what `tensor` holds; the address in
    `fields` is not looked at."""

    fields: TensorMap
    of: int = -1
    tensor: Tensor | None = None


Argument = Tensor | Map | int | bytes
"""Bytes are those of a parameter that is none of the others."""


class Launch(NamedTuple):
    """How a kernel is launched: `grid` in CTAs, `shared` in bytes of dynamic shared memory."""

    arguments: tuple[Argument, ...]
    threads: int = 64
    grid: tuple[int, int, int] = (1, 1, 1)
    shared: int = 0


class Case(NamedTuple):
    """Something to run; `arch` is what it is assembled for."""

    name: str
    text: str
    launch: Launch
    arch: str = "sm_90a"
    is_small: bool = True
    """A few instructions: a run that takes long does not end."""


class Mark(NamedTuple):
    """A finding that there must be: the rule, the line from 1, CTA and thread (along x)."""

    rule: str
    line: int
    program: int
    thread: int


class Defect:
    """One thing made wrong.

    `family` is the tool of compute-sanitizer whose business it is, or `none` where it is nobody's.
    `what` says in a sentence what is wrong. Either `changes`, pairs of texts, are made in the
    kernel, or the launch is another one (`wrong_launch`). `unseen` says why the emulator does not
    find it, if it does not; `gpu` why no tool of compute-sanitizer does. `hangs` says that a GPU
    need not come to an end.
    """

    def __init__(
        self,
        name: str,
        family: str,
        what: str,
        text: str | Callable[[], str],
        launch: Launch | Callable[[], Launch],
        changes: tuple[tuple[str, str], ...] = (),
        *,
        wrong_launch: Launch | None = None,
        unseen: str = "",
        gpu: str = "",
        hangs: bool = False,
        arch: str = "sm_90a",
    ) -> None:
        self.name, self.family, self.what = name, family, what
        self._text, self._launch, self._changes = text, launch, changes
        self._wrong_launch = wrong_launch
        self.unseen, self.gpu, self.hangs, self._arch = unseen, gpu, hangs, arch

    @cached_property
    def right(self) -> Case:
        """As it should be."""
        launch = self._launch if isinstance(self._launch, Launch) else self._launch()
        text = self._text if isinstance(self._text, str) else self._text()
        return Case(f"{self.name}, mended", text, launch, self._arch)

    @cached_property
    def wrong(self) -> Case:
        """As it is. Raises ValueError for a change whose text is not there exactly once."""
        text = self.right.text
        for old, new in self._changes:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} is there {text.count(old)} times")
            text = text.replace(old, new)
        return Case(self.name, text, self._wrong_launch or self.right.launch, self._arch)

    @property
    def marks(self) -> list[Mark]:
        """What must be found where."""
        out = []
        for number, line in enumerate(self.wrong.text.splitlines(), 1):
            mark = _MARK.search(line)
            if mark is None:
                continue
            found = list(_EACH.finditer(mark[1]))
            if "".join(m[0] for m in found) != mark[1]:
                raise ValueError(f"{self.name}: what does {mark[0]!r} mean?")
            out += [Mark(m[1], number, int(m[3] or 0), int(m[2])) for m in found]
        return out


def kernel(body: str, parameters: str, declarations: str = "") -> str:
    """A kernel `k` around a body. `parameters` has a letter for each: `p` for a pointer, `i` for an
    integer of 32 bits, `m` for a tensor map."""
    kinds = {"p": ".param .u64 {}", "i": ".param .u32 {}", "m": ".param .align 64 .b8 {}[128]"}
    listed = ",\n  ".join(kinds[kind].format(f"k_param_{at}") for at, kind in enumerate(parameters))
    taken = []
    for at, kind in enumerate(parameters):
        if kind == "p":
            taken.append(f"  ld.param.u64 %rd{at}, [k_param_{at}];")
            taken.append(f"  mad.wide.s32 %rd{10 + at}, %r2, 4, %rd{at};")
        elif kind == "i":
            taken.append(f"  ld.param.u32 %r{10 + at}, [k_param_{at}];")
    lines = "\n".join(taken)
    return f"""\
.version 8.7
.target sm_90a
.address_size 64

{declarations.strip()}
.visible .entry k(
  {listed}
)
{{
  .reg .pred %p<16>;
  .reg .b16 %rs<16>;
  .reg .b32 %r<100>;
  .reg .b64 %rd<40>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.s32 %r2, %r1, %r2, %r0;
{lines}
{body.strip(chr(10))}
  ret;
}}
"""


def numbered(count: int, first: int = 0) -> NDArray[np.int32]:
    """32-bit integers that count up."""
    return np.arange(first, first + count, dtype=np.int32)


def blank(count: int) -> Tensor:
    """So many 32-bit words that nothing was written to."""
    return Tensor(np.zeros(count, dtype=np.int32), "blank")


__all__ = [
    "ROOT",
    "Case",
    "Defect",
    "Launch",
    "Map",
    "Mark",
    "Tensor",
    "blank",
    "kernel",
    "numbered",
]
