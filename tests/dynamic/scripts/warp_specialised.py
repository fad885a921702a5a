"""A product whose loads are the job of one warp and whose products that of others (Gluon).

They meet at mbarriers alone. FAULT leaves one of these meetings out: "arrive" of those who multiply,
"empty", the wait of the one who loads, or "full", the wait of those who multiply.

Given builds as JSON, a list of arguments of `compiled` each, it prints what they compile to.
"""

import json
import sys

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.experimental import gluon
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait,
)


@gluon.jit
def produce(a_desc, b_desc, a_tiles, b_tiles, full, empty, m, n, K,
            BLOCK_K: gl.constexpr, STAGES: gl.constexpr, FAULT: gl.constexpr):
    step = 0
    for k in range(0, K, BLOCK_K):
        stage, phase = step % STAGES, step // STAGES & 1
        if FAULT != "empty":
            mbarrier.wait(empty.index(stage), phase ^ 1)
        ready = full.index(stage)
        mbarrier.expect(ready, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_load(a_desc, [m, k], ready, a_tiles.index(stage))
        tma.async_load(b_desc, [n, k], ready, b_tiles.index(stage))
        step += 1


@gluon.jit
def consume(c_desc, a_tiles, b_tiles, full, empty, m, n, K,
            BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr,
            STAGES: gl.constexpr, WARPS: gl.constexpr, FAULT: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, BLOCK_N, 16]
    )
    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout)
    step = 0
    for k in range(0, K, BLOCK_K):
        stage, phase = step % STAGES, step // STAGES & 1
        if FAULT != "full":
            mbarrier.wait(full.index(stage), phase)
        acc = warpgroup_mma(
            a_tiles.index(stage), b_tiles.index(stage).permute((1, 0)), acc, is_async=True
        )
        acc = warpgroup_mma_wait(0, deps=(acc,))
        if FAULT != "arrive":
            mbarrier.arrive(empty.index(stage), count=1)
        step += 1
    tile = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    tile.store(acc.to(c_desc.dtype))
    fence_async_shared()
    tma.async_store(c_desc, [m, n], tile)
    tma.store_wait(0)


@gluon.jit
def product(c_desc, a_desc, b_desc, K,
            BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr,
            STAGES: gl.constexpr, WARPS: gl.constexpr, FAULT: gl.constexpr):
    m, n = gl.program_id(0) * BLOCK_M, gl.program_id(1) * BLOCK_N
    a_tiles = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_tiles = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_N, BLOCK_K], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    gl.warp_specialize([
        (consume, (c_desc, a_tiles, b_tiles, full, empty, m, n, K,
                   BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS, FAULT)),
        (produce, (a_desc, b_desc, a_tiles, b_tiles, full, empty, m, n, K,
                   BLOCK_K, STAGES, FAULT)),
    ], [1], [24])


def compiled(block_m, block_n, block_k, depth, warps, fault):
    """The PTX of one build for sm_90, and the bytes of shared memory that it takes."""
    constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "STAGES": depth,
                 "WARPS": warps, "FAULT": fault}
    blocks = {"c_desc": [block_m, block_n], "a_desc": [block_m, block_k], "b_desc": [block_n, block_k]}
    signature = {
        name: f"tensordesc<fp16{block},{gl.NVMMASharedLayout.get_default_for(block, gl.float16)!r}>"
        for name, block in blocks.items()
    }
    signature |= {"K": "i32"} | dict.fromkeys(constants, "constexpr")
    places = {(product.arg_names.index(name),): value for name, value in constants.items()}
    source = GluonASTSource(product, signature, places)
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": warps, **source.parse_options()})
    stages = {}
    backend.add_stages(stages, options, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    helpers = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, helpers, backend.get_module_map(), context)
    metadata = {"target": target, **options.__dict__}
    for name, stage in stages.items():
        if name != "cubin":
            module = stage(module, metadata)
    return str(module), metadata["shared"]


if __name__ == "__main__":
    print(json.dumps([compiled(*build) for build in json.loads(sys.argv[1])]))
