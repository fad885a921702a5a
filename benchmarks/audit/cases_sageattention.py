"""Calls that make sageattention compile its kernels: attention on 8-bit integers, forward only.

Lengths are no multiples of the tiles, so that masks are there to be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sageattention.core as library
import torch


def tensor(*shape: int, dtype: Any) -> Any:
    return torch.randn(*shape, device="cuda").to(dtype)


def attend(
    head: int, length: int, keys: int, layout: str, causal: bool, kind: Any, groups: int = 2
) -> None:
    """Grouped heads: `groups` query heads share one of the keys."""

    def shaped(heads: int, count: int) -> Any:
        sizes = (2, heads, count, head) if layout == "HND" else (2, count, heads, head)
        return tensor(*sizes, dtype=kind)

    library.sageattn(
        shaped(2 * groups, length), shaped(2, keys), shaped(2, keys), tensor_layout=layout,
        is_causal=causal,
    )  # fmt: skip


def attend_packed(head: int, lengths: list[int], causal: bool, kind: Any) -> None:
    """Sequences one behind the other; where each begins the host knows."""
    ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).to(torch.int32).cuda()
    total, longest = sum(lengths), max(lengths)
    library.sageattn_varlen(
        tensor(total, 4, head, dtype=kind), tensor(total, 2, head, dtype=kind),
        tensor(total, 2, head, dtype=kind), ends, ends, longest, longest, is_causal=causal,
    )  # fmt: skip


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of every kernel."""
    for kind in (torch.float16, torch.bfloat16):
        short = str(kind).removeprefix("torch.")
        for head in (64, 96, 128):
            for causal in (False, True):
                name = f"{head}_{'causal' if causal else 'full'}_{short}"
                yield (
                    f"attend_{name}",
                    lambda head=head, causal=causal, kind=kind: attend(
                        head, 1000, 1000, "HND", causal, kind
                    ),
                )
                if head != 96:
                    yield (
                        f"packed_{name}",
                        lambda head=head, causal=causal, kind=kind: attend_packed(
                            head, [100, 1, 517, 384], causal, kind
                        ),
                    )
        yield f"cross_{short}", lambda kind=kind: attend(64, 77, 4099, "NHD", False, kind, 1)
        yield f"decode_{short}", lambda kind=kind: attend(128, 1, 2048, "NHD", False, kind, 4)
        yield f"exact_{short}", lambda kind=kind: attend(128, 1024, 1024, "NHD", True, kind)
