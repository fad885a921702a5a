#!/bin/sh
# What `make demo` shows: kernels that come with the sources, checked by the `ptxlint` on the PATH.
# No GPU, no Triton, no torch. Fails if a command leaves with another exit status than it should.
set -u
cd "$(dirname "$0")/.." || exit 1

# show WHAT STATUS COMMAND...: say what, print the command, run it, compare its exit status.
show() {
    what=$1 expected=$2
    shift 2
    printf '\n%s\n\n$ %s\n' "$what" "$*"
    "$@"
    status=$?
    printf '[exit status %d]\n' "$status"
    if [ "$status" -ne "$expected" ]; then
        printf 'demo: this should have left with exit status %d\n' "$expected" >&2
        exit 1
    fi
}

show '1. Softmax, compiled by Triton for sm_90: masked lanes are filled with 0 and change the result.
   Exit status 1 stands for errors or warnings.' \
    1 ptxlint check fixtures/ptx/sm_90/softmax_buggy.ptx
show '2. The same kernel with the right fill. Exit status 0: neither errors nor warnings.' \
    0 ptxlint check fixtures/ptx/sm_90/softmax.ptx
show '3. RMS norm: eps reached the kernel as a 64-bit float. Right, and slow.' \
    1 ptxlint check fixtures/ptx/sm_90/rmsnorm_eps_fp64.ptx
show '4. One finding over six architectures is told once.' \
    1 ptxlint check --select NUM407 fixtures/ptx
show '5. CUDA, compiled by nvcc: a shuffle that some of the lanes it names do not reach, with a launch
   in which that happens.' \
    1 ptxlint check --select SYN fixtures/ptx-nvcc/sm_90/warp.ptx
show '6. A file with a fault: the rest is still checked. Exit status 2 stands for: something was not
   analysed.' \
    2 ptxlint check fixtures/syntax/invalid/undeclared_register.ptx
show '7. Two builds of one kernel, of which the second has another slope: as code they are the same, and
   what differs is a number. `--fail-on` makes that exit status 1.' \
    1 ptxlint diff fixtures/ptx/sm_80/leaky_relu.ptx fixtures/ptx/sm_80/leaky_relu_buggy.ptx \
    --fail-on constants
show '8. One kernel on two architectures, side by side.' \
    0 ptxlint compare fixtures/ptx/sm_80/leaky_relu.ptx fixtures/ptx/sm_90/leaky_relu.ptx
show '9. What is looked for; `ptxlint rule MSK201` says more.' \
    0 ptxlint rules
