"""Calls that make fla-core compile its operators, forward and backward.

Arguments are made from the parameters' names: the library is regular in them. Sequence lengths and
head sizes are no multiples of the tiles, so that masks are there to be judged. One autotuner
configuration each: with launches that take no time, the first one wins.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch

BATCH, TIME, HEADS, KEY, VALUE = 2, 100, 4, 60, 72

OPERATORS = """
gla:chunk_gla gla:fused_recurrent_gla
simple_gla:chunk_simple_gla simple_gla:fused_chunk_simple_gla simple_gla:fused_recurrent_simple_gla
simple_gla:parallel_simple_gla delta_rule:chunk_delta_rule delta_rule:fused_recurrent_delta_rule
retention:chunk_retention retention:fused_chunk_retention retention:fused_recurrent_retention
retention:parallel_retention linear_attn:chunk_linear_attn linear_attn:fused_chunk_linear_attn
linear_attn:fused_recurrent_linear_attn hgrn:chunk_hgrn hgrn:fused_recurrent_hgrn
attn:parallel_attn rwkv6:chunk_rwkv6 rwkv6:fused_recurrent_rwkv6 rwkv7:chunk_rwkv7
rwkv7:fused_recurrent_rwkv7 gated_delta_rule:chunk_gated_delta_rule
gated_delta_rule:fused_recurrent_gated_delta_rule path_attn:parallel_path_attn
lightning_attn:chunk_lightning_attn lightning_attn:fused_recurrent_lightning_attn
based:fused_chunk_based based:parallel_based kda:chunk_kda kda:fused_recurrent_kda
comba:chunk_comba comba:fused_recurrent_comba gsa:chunk_gsa gsa:fused_recurrent_gsa
forgetting_attn:parallel_forgetting_attn mesa_net:chunk_mesa_net
gated_delta_product:chunk_gated_delta_product rebased:parallel_rebased
generalized_delta_rule:chunk_dplr_delta_rule generalized_delta_rule:chunk_iplr_delta_rule
log_linear_attn:chunk_log_linear_attn stickbreaking_attn:parallel_stickbreaking_attn
ttt:chunk_ttt_linear deltaformer:deltaformer_attn
""".split()

FORWARD_ONLY = {
    "rwkv7:fused_recurrent_rwkv7",
    "gated_delta_rule:fused_recurrent_gated_delta_rule",
    "comba:fused_recurrent_comba",
    "generalized_delta_rule:chunk_iplr_delta_rule",
}
"""What the library says that it has no backward for."""

PACKED = """
gla:chunk_gla simple_gla:chunk_simple_gla delta_rule:chunk_delta_rule kda:chunk_kda
gated_delta_rule:chunk_gated_delta_rule forgetting_attn:parallel_forgetting_attn
""".split()
"""Called with sequences of different lengths, too, one behind the other."""


def tensor(*shape: int, gate: bool = False) -> Any:
    made = torch.randn(*shape, device="cuda")
    made = torch.nn.functional.logsigmoid(made) if gate else made
    return made.to(torch.bfloat16).requires_grad_(True)


def argument(name: str, operator: str) -> Any:
    """A value for a parameter; None for one that has no standing meaning."""
    if name in ("q", "k", "r", "p", "a", "b", "kk"):
        return tensor(BATCH, TIME, HEADS, KEY)
    if name in ("v", "x"):
        return tensor(BATCH, TIME, HEADS, VALUE)
    if name in ("g", "gk", "w", "alpha", "gate"):
        scalar = name != "gk" and any(
            part in operator
            for part in ("simple", "gated_delta", "forget", "comba", "log_l", "mesa")
        )
        return tensor(*((BATCH, TIME, HEADS) if scalar else (BATCH, TIME, HEADS, KEY)), gate=True)
    if name in ("beta", "lamb", "eta"):
        return tensor(BATCH, TIME, HEADS).sigmoid()
    if name == "u":
        return tensor(HEADS, KEY)
    if name == "s":
        return tensor(BATCH, TIME, HEADS, KEY)
    return None


def special(place: str) -> dict[str, Any]:
    """Arguments of operators whose shapes are not those of the others."""
    name = place.partition(":")[2]
    alone = {
        "parallel_attn": {"g": tensor(BATCH, TIME, HEADS, gate=True)},
        "parallel_path_attn": {
            **{name: tensor(BATCH, TIME, HEADS, 64) for name in "qkv"},
            "w": tensor(BATCH, TIME, HEADS, 64).float().detach().requires_grad_(True),
            "beta": tensor(BATCH, TIME, HEADS).float().detach().requires_grad_(True),
            "g": tensor(BATCH, TIME, HEADS, gate=True).float().detach().requires_grad_(True),
        },
        "fused_chunk_based": {
            "q": tensor(BATCH, TIME, HEADS, 16),
            "k": tensor(BATCH, TIME, HEADS, 16),
        },
        "chunk_mesa_net": {
            "v": tensor(BATCH, TIME, HEADS, KEY),
            "lamb": torch.rand(HEADS, KEY, device="cuda").requires_grad_(True),
        },
        "chunk_gated_delta_product": {
            "k": tensor(BATCH, 2 * TIME, HEADS, KEY),
            "v": tensor(BATCH, 2 * TIME, HEADS, VALUE),
            "beta": tensor(BATCH, 2 * TIME, HEADS).sigmoid(),
            "num_householder": 2,
        },
        "chunk_log_linear_attn": {
            "q": tensor(BATCH, TIME, HEADS, 64),
            "k": tensor(BATCH, TIME, HEADS, 64),
            "v": tensor(BATCH, TIME, HEADS, 64),
            "level_scales": tensor(BATCH, TIME, HEADS, 8),
        },
        "chunk_ttt_linear": {
            "v": tensor(BATCH, TIME, HEADS, KEY),
            "w": tensor(HEADS, KEY),
            "b": tensor(HEADS, KEY),
            "eta": tensor(BATCH, TIME, HEADS, 1),
        },
    }
    return alone.get(name, {})


def packed(named: dict[str, Any]) -> dict[str, Any]:
    """The batch as one row of sequences that have different lengths."""
    rows = {key: value.flatten(0, 1)[None].detach() for key, value in named.items()}
    ends = torch.tensor([0, 1, 65, 129, BATCH * TIME], dtype=torch.int32).cuda()
    return {**{k: v.requires_grad_(True) for k, v in rows.items()}, "cu_seqlens": ends}


def run(place: str, lengths: bool = False) -> None:
    module, name = place.split(":")
    function = getattr(import_module(f"fla.ops.{module}"), name)
    named = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        value = argument(parameter.name, name)
        if "hgrn" in name and value is not None:
            value = tensor(BATCH, TIME, 200, gate=parameter.name == "g")
        if value is not None:
            named[parameter.name] = value
        elif parameter.name == "layer_idx":
            named[parameter.name] = 1
        elif parameter.name == "num_layers":
            named[parameter.name] = 8
    named |= special(place)
    result = function(**(packed(named) if lengths else named))
    if place in FORWARD_ONLY:
        return
    parts = result if isinstance(result, tuple) else (result,)
    wanted = [p for p in parts if isinstance(p, torch.Tensor) and p.requires_grad]
    torch.autograd.backward(wanted, [torch.ones_like(p) for p in wanted])


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of every operator."""
    for place in OPERATORS:
        yield place, lambda place=place: run(place)
    for place in PACKED:
        yield f"{place}_packed", lambda place=place: run(place, lengths=True)
