"""Where tensors are, and what is in them."""

import threading

import numpy
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x, out):
    copy[(1,)](x, out, 8, BLOCK=8)


host = torch.arange(64.0)
assert not host.is_cuda
assert host.device.type == "cpu"
there = host[16:32].cuda()
assert there.is_cuda
assert there.device == torch.device("cuda", 0)
assert there.get_device() == 0
assert there.cuda() is there
assert there.to("cuda:0") is there
assert there.untyped_storage().nbytes() == 64, "moved alone, not with what it was cut from"
assert not there.cpu().is_cuda
assert (there + 1).is_cuda
assert torch.zeros_like(there).device.type == "cuda"
assert float(there[1]) == 17.0
run(there, torch.empty(8, device="cuda"))
run(there[4:], there.new_zeros(8))
with torch.device("cuda"):
    run(torch.ones(8), torch.empty(8))
torch.set_default_device("cuda")
assert torch.ones(8).is_cuda
run(torch.ones(8), torch.empty(8).zero_())
torch.set_default_device(None)
assert not torch.ones(8).is_cuda
touched = torch.empty(8, device="cuda")
touched[:4] = 1.0
run(there, touched)
module = torch.nn.Linear(8, 8).to("cuda")
assert module.weight.is_cuda
run(module.weight, module(torch.ones(1, 8, device="cuda")).detach())
run(torch.from_numpy(numpy.ones(8, numpy.float32)).to(device="cuda"), torch.empty(8, device="meta"))
thread = threading.Thread(target=lambda: run(torch.ones(8, device="cuda"), touched))
thread.start()
thread.join()
gone = torch.ones(8, device="cuda")
gone.untyped_storage().resize_(0)
run(gone, torch.empty(8, device="cuda"))
generator = torch.Generator(device="cuda").manual_seed(1)
torch.randn(8, device="cuda", generator=generator)
torch.manual_seed(3)
drawn = torch.randn(4, device="cuda")
torch.cuda.manual_seed_all(3)
assert torch.equal(torch.randn(4, device="cuda"), drawn)
state = torch.cuda.get_rng_state_all()
torch.cuda.seed()
torch.cuda.set_rng_state_all(state)
assert torch.cuda.initial_seed() == 3
stream = torch.cuda.Stream()
with torch.cuda.stream(stream), torch.cuda.device(0):
    torch.cuda.synchronize()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
end.record()
assert begin.elapsed_time(end) > 0
# On the CPU there is no such product.
half = torch.ones(8, 8, device="cuda", dtype=torch.float16)
assert torch.mm(half, half, out_dtype=torch.float32).dtype == torch.float32
