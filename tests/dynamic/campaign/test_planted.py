"""Planted faults in one campaign: each is told as what it is, and no other verdict changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.dynamic.campaign.campaign import Campaign, Settings, Task
from ptxlint.dynamic.campaign.gate import Options
from ptxlint.dynamic.campaign.machine import gpus
from ptxlint.dynamic.campaign.verdict import Verdict
from ptxlint.dynamic.runners.supervisor import ForkServer, Limits

SPEC = Path(__file__).parents[1] / "specs" / "planted.py"
LIMITS = Limits(seconds=20, memory=6 << 30)
EVERYWHERE = {
    "right": "pass", "waits": "hang", "other_input": "canaries", "leaves": "exit",
    "leaves_at_once": "exit", "floods": "output", "hoards": "memory", "right_too": "pass",
}  # fmt: skip
EMULATED = {**EVERYWHERE, "far": "BND302", "behind": "BND302"}
# Who loses the device loses what was launched there: nothing is left to check.
ON_CUDA = {**EVERYWHERE, "far": "device", "behind": "BND302"}


def verdicts(server: ForkServer, runner: str, **more: Limits) -> list[Verdict]:
    """Of all operators; those of the right ones once more, each alone."""
    campaign = Campaign(Settings(Options(runner), **more), server)  # type: ignore[arg-type]
    found = campaign.run(campaign.tasks([str(SPEC)]))
    by_name = {verdict.name: verdict for verdict in found}
    for name in ("right", "right_too"):
        alone = Campaign(Settings(Options(runner), **more), server)  # type: ignore[arg-type]
        again = alone.decide(Task(str(SPEC), name))
        assert again._replace(seconds=0) == by_name[name]._replace(seconds=0)
    return found


def told(verdict: Verdict) -> str:
    """In a word: the rule, or what became of the run that fails."""
    if verdict.problem or verdict.verdict != "fail":
        return verdict.problem or verdict.verdict
    failure = verdict.failures[0]
    assert failure.shown is not None
    return failure.rule or failure.shown.kind


@pytest.mark.slow
def test_on_the_emulator(triton_server: ForkServer) -> None:
    limits = LIMITS._replace(memory=2 << 30)
    found = verdicts(triton_server, "emulator", limits=limits)
    assert {verdict.name: told(verdict) for verdict in found} == EMULATED


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_gpu() -> None:
    if not gpus():
        pytest.skip("no GPU: nvidia-smi names none")
    server = ForkServer("cuda")
    try:
        found = {verdict.name: verdict for verdict in verdicts(server, "cuda", limits=LIMITS)}
    finally:
        server.close()
    assert {name: told(verdict) for name, verdict in found.items()} == ON_CUDA
    (far,) = found["far"].failures
    assert "illegal memory access" in far.reason
    (behind,) = found["behind"].failures
    assert behind.shown is not None
    assert (behind.shown.kind, behind.confirmed) == ("canaries", True)
    assert "12 bytes behind its end" in behind.shown.reason
