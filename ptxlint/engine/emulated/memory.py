"""Accesses to memory that the run shows to be wrong."""

from __future__ import annotations

from typing import Any, Final

from ptxlint.engine.emulated.rule import EmulatedRule
from ptxlint.rulekit import TILE_START, Sample


def _launch(elements: int = 256, grid: int = 2, **changes: Any) -> dict[str, Any]:
    """A launch of tiles of 128 elements on tensors of 256."""
    arguments = {"in_ptr": "float32[256]", "out_ptr": "float32[256]", "n_elements": elements}
    return {"grid": grid, "block": 128, "arguments": {**arguments, **changes}}


_COPY = "@%p1 ld.global.b32 %r6, [%rd4];\n@%p1 st.global.b32 [%rd5], %r6;\nret;"

OUTSIDE: Final = EmulatedRule(
    "EMU901",
    "emulated-out-of-bounds",
    "An access leaves the memory that it may touch.",
    "The tensors of a launch lie far apart in the emulator, so that an index which leaves its "
    "tensor meets no other one. On a device it reads or overwrites whatever lies there, mostly "
    "without a word. The finding names the first program and thread, the nearest tensor and the "
    "distance in bytes. Such a load brings zeros here and such a store is lost.",
    "Bound the index by the extent of the tensor that is passed, in the mask of the load or store.",
    "bounds",
    bad=(
        Sample(
            "the mask knows of 256 elements, the tensor has 200",
            TILE_START + "@%p1 st.global.b32 [%rd5], %r5; //~ EMU901\nret;",
            launch=_launch(out_ptr="float32[200]"),
        ),
        Sample(
            "shared memory has an end, too",
            """
            .shared .align 4 .b8 tile[256];
            .reg .b32 %r<4>;
            mov.u32 %r1, %tid.x;
            shl.b32 %r1, %r1, 2;
            mov.u32 %r2, tile;
            add.u32 %r2, %r2, %r1;
            st.shared.b32 [%r2], %r1; //~ EMU901
            ret;
            """,
            launch=_launch(),
        ),
    ),
    good=(
        Sample(
            "the mask knows how many there are",
            TILE_START + "@%p1 st.global.b32 [%rd5], %r5;\nret;",
            launch=_launch(200, out_ptr="float32[200]"),
        ),
    ),
)
MISALIGNED: Final = EmulatedRule(
    "EMU902",
    "emulated-misaligned",
    "An access is at no multiple of its size.",
    "A device ends the whole launch at such an access, and all later work of the process with it. "
    "Triton makes wide accesses where it was told that a pointer or a stride is a multiple of 16.",
    "Pass a tensor that is aligned as the kernel was compiled for, or compile it for the one that "
    "is passed.",
    "bounds",
    bad=(
        Sample(
            "16 bytes at an address that is a multiple of 4",
            TILE_START + "st.global.v4.b32 [%rd5], {%r1, %r2, %r3, %r4}; //~ EMU902\nret;",
            launch=_launch(grid=1),
        ),
    ),
    good=(
        Sample(
            "4 bytes there",
            TILE_START + "st.global.b32 [%rd5], %r1;\nret;",
            launch=_launch(),
        ),
    ),
)
READ_ONLY: Final = EmulatedRule(
    "EMU903",
    "emulated-read-only",
    "A store or an atomic meets memory that the kernel may not write.",
    "Constants of the module are read-only, and so are numpy arrays that are not writeable when "
    "they are handed to the emulator from Python. Such a store is lost here.",
    "Write to an output instead.",
    "bounds",
    bad=(
        Sample(
            "a store to a constant",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .const .align 4 .b32 factor = 3;
            .visible .entry k(.param .u64 out_ptr)
            {
            .reg .b64 %rd<4>;
            .reg .b32 %r<2>;
            mov.u64 %rd1, factor;
            cvta.const.u64 %rd2, %rd1;
            mov.u32 %r1, 5;
            st.b32 [%rd2], %r1; //~ EMU903
            ret;
            }
            """,
            launch={"grid": 1, "block": 32, "arguments": {"out_ptr": "int32[1]"}},
        ),
    ),
    good=(
        Sample(
            "a constant that is read",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .const .align 4 .b32 factor = 3;
            .visible .entry k(.param .u64 out_ptr)
            {
            .reg .b64 %rd<4>;
            .reg .b32 %r<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.const.b32 %r1, [factor];
            st.global.b32 [%rd1], %r1;
            ret;
            }
            """,
            launch={"grid": 1, "block": 32, "arguments": {"out_ptr": "int32[1]"}},
        ),
    ),
)
_TENSOR: Final = {"kind": "tensor", "dtype": "float32", "shape": [256]}
_EMPTY: Final = _TENSOR | {"fresh": "uninitialised"}
BLANK: Final = EmulatedRule(
    "EMU904",
    "emulated-uninitialised-read",
    "A load reads global memory that nothing was written to.",
    "What `torch.empty` gives holds whatever was there before: often zeros in a test and something "
    "else in production. A captured launch says which tensors the host has allocated and not "
    "written since, and every byte is followed from there on.",
    "Zero the memory before the launch, or write it before it is read.",
    "rerun",
    bad=(
        Sample(
            "the input was allocated and never written",
            TILE_START + _COPY.replace("[%rd4];", "[%rd4]; //~ EMU904"),
            launch=_launch(in_ptr=_EMPTY),
        ),
    ),
    good=(
        Sample(
            "only the output was",
            TILE_START + _COPY,
            launch=_launch(out_ptr=_EMPTY),
        ),
    ),
)
_MAP = """
            .version 8.0
            .target sm_90a
            .address_size 64
            .shared .align 128 .b8 tile[256];
            .shared .align 8 .b64 bar;
            .visible .entry k(.param .align 64 .b8 desc[128])
            .reqntid 32, 1, 1
            {
            .reg .pred %p<3>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<3>;
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            mov.u32 %r2, bar;
            mov.u32 %r3, tile;
            mov.u32 %r4, 0;
            mov.b64 %rd1, desc;
            cvta.param.u64 %rd2, %rd1;
            @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
            @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
            @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes \
[%r3], [%rd2, {%r4, %r4}], [%r2]; MARK
            ret;
            }
"""


def _described(columns: int) -> dict[str, Any]:
    """A launch with a tensor of so many columns behind a descriptor."""
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [16, columns]}
    descriptor = {
        "kind": "descriptor",
        "tensor": tensor,
        "block": [8, 8],
        "by": "map",
        "passed": [],
    }
    return {"grid": 1, "arguments": {"desc": descriptor}}


TENSOR_MAP: Final = EmulatedRule(
    "EMU911",
    "emulated-tensor-map",
    "A tensor copy uses a map that the hardware does not take.",
    "A tensor map says where a tensor lies and how tiles are cut from it. Addresses, strides and "
    "the rows of tiles must be multiples of 16 bytes, a tile has at most 256 elements a dimension, "
    "and a swizzle bounds its rows. Where the driver does not refuse such a map, the copy fails or "
    "brings other data. Nothing is copied here.",
    "Give the tensor map what the hardware takes: pad the rows of the tensor to multiples of 16 "
    "bytes, or load it without a descriptor.",
    "bounds",
    bad=(Sample("rows of 24 bytes", _MAP.replace("MARK", "//~ EMU911"), launch=_described(6)),),
    good=(Sample("rows of 32 bytes", _MAP.replace(" MARK", ""), launch=_described(8)),),
)
FREED: Final = EmulatedRule(
    "EMU916",
    "emulated-use-after-free",
    "An access meets memory that was given back.",
    "A tensor whose storage the host has freed (`untyped_storage().resize_(0)`, as training in "
    "shards does between the uses of a parameter) still has a shape, and the kernel an address. "
    "Whatever was allocated since lies there. A captured launch says which storages are gone, a "
    "launch file with `freed`. Such a load brings zeros here and such a store is lost.",
    "Launch while the tensor's memory is its own, or pass a tensor that has some.",
    "bounds",
    bad=(
        Sample(
            "the input was freed before the launch",
            TILE_START + _COPY.replace("[%rd4];", "[%rd4]; //~ EMU916"),
            launch=_launch(in_ptr=_TENSOR | {"freed": True}),
        ),
    ),
    good=(
        Sample(
            "it is still there",
            TILE_START + _COPY,
            launch=_launch(in_ptr=_TENSOR | {"freed": False}),
        ),
    ),
)
MEMORY: Final = (OUTSIDE, MISALIGNED, READ_ONLY, BLANK, TENSOR_MAP, FREED)

__all__ = ["BLANK", "FREED", "MEMORY", "MISALIGNED", "OUTSIDE", "READ_ONLY", "TENSOR_MAP"]
