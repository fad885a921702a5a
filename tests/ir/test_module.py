"""Which Python frame a person is shown."""

from __future__ import annotations

import pytest

from ptxlint.frontends.ptx import parse


def frame_of(files: dict[int, str], locs: str) -> tuple[str, int] | None:
    declared = "".join(f'.file {n} "{p}"\n' for n, p in files.items())
    module = parse(f".version 8.0\n.target sm_80\n.entry k()\n{{\n{locs}\n\tret;\n}}\n{declared}")
    assert module.problems == []
    frame = module.python_frame(module.functions[0].instrs[-1].loc)
    return None if frame is None else (frame.path, frame.line)


INLINED = "\t.loc 1 9 13\n\t.loc 2 216 16, function_name s, inlined_at 1 9 13\n"


@pytest.mark.parametrize(
    "library",
    [
        "triton/language/standard.py",
        "/usr/lib/python3/site-packages/triton/language/standard.py",
        "C:\\site-packages\\triton\\language\\standard.py",
        "/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_bf16.hpp",
        "/usr/local/cuda/bin/../targets/x86_64-linux/include/crt/sm_70_rt.hpp",
        "C:\\NVIDIA GPU Computing Toolkit\\CUDA\\v13\\include\\cuda_fp16.hpp",
        "site-packages/nvidia/cuda_runtime/include/cuda_fp8.hpp",
        "site-packages/nvidia/cu13/include/cccl/cub/warp/warp_reduce.cuh",
        "cuda/include/device_atomic_functions.hpp",
    ],
)
def test_the_library_frame_gives_way_to_the_kernel(library: str) -> None:
    assert frame_of({1: "k.py", 2: library}, INLINED) == ("k.py", 9)


@pytest.mark.parametrize(
    "path", ["helpers.py", "include/reduce.cuh", "cuda_kernels/include/reduce.cuh", "cuda/sums.cuh"]
)
def test_an_inlined_helper_of_the_user_is_shown_itself(path: str) -> None:
    assert frame_of({1: "k.py", 2: path}, INLINED) == (path, 216)


def test_a_chain_of_three() -> None:
    locs = INLINED + "\t.loc 3 5 1, function_name s, inlined_at 2 216 16\n"
    files = {1: "k.py", 2: "triton/language/standard.py", 3: "triton/language/core.py"}
    assert frame_of(files, locs) == ("k.py", 9)


def test_only_library_frames() -> None:
    assert frame_of({1: "triton/language/core.py"}, "\t.loc 1 7 1\n") == (
        "triton/language/core.py",
        7,
    )


def test_no_file_no_frame() -> None:
    assert frame_of({}, "\t.loc 1 7 1\n") is None
