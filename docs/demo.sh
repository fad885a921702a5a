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

show '1. RMS norm, compiled by Triton for sm_90: eps reached the kernel as a 64-bit float. Exit
   status 1 stands for errors or warnings.' \
    1 ptxlint check fixtures/ptx/sm_90/rmsnorm_eps_fp64.ptx
show '2. The same kernel with a 32-bit eps. Exit status 0: neither errors nor warnings.' \
    0 ptxlint check fixtures/ptx/sm_90/rmsnorm.ptx
show '3. One finding over six architectures is told once.' \
    1 ptxlint check --select NUM407 fixtures/ptx
show '4. CUDA, compiled by nvcc: a shuffle that some of the lanes it names do not reach, with a launch
   in which that happens.' \
    1 ptxlint check --select SYN fixtures/ptx-nvcc/sm_90/warp.ptx
show '5. A file with a fault: the rest is still checked. Exit status 2 stands for: something was not
   analysed.' \
    2 ptxlint check fixtures/syntax/invalid/undeclared_register.ptx
show '6. What is looked for; `ptxlint rule NUM407` says more.' \
    0 ptxlint rules
