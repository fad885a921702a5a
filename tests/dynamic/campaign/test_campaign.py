"""Whole campaigns over spec files, in child processes. Plain numpy: nothing is compiled."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.campaign.campaign import Campaign, Settings, Task
from ptxlint.dynamic.campaign.gate import Options
from ptxlint.dynamic.campaign.replay import ReplayError, compared, read_replay, run_again
from ptxlint.dynamic.campaign.store import Store
from ptxlint.dynamic.campaign.verdict import Verdict, exit_status
from ptxlint.dynamic.runners.supervisor import ForkServer, Limits

HEAD = """
import os, time
from functools import partial
import numpy as np
from ptxlint.dynamic.operators import Dim, Operator, Tensor

def double(x):
    return x * 2

spec = partial(
    Operator, reference=double, dims={"n": Dim(1, 64)}, inputs={"x": Tensor("n")},
    dtypes=("float32", "float16"), runs_on="numpy",
)
"""
SPECS = {
    "good.py": """
good = spec(kernel=double)
""",
    "wrong.py": """
def tile(x):
    out = np.empty_like(x)
    out[: len(x) // 4 * 4] = x[: len(x) // 4 * 4] * 2
    return out

unwritten = spec(kernel=tile)
tripled = spec(kernel=lambda x: x * 3)
""",
    "evil.py": """
def corrupts(x):
    out = x * 2
    x[0] = 7
    return out

hangs = spec(kernel=lambda x: time.sleep(60))
exits = spec(kernel=lambda x: os._exit(3))
writes_inputs = spec(kernel=corrupts)
""",
    "bad_input.py": """
def raises(x):
    raise ValueError("not implemented for odd sizes")

reference_raises = spec(kernel=double, reference=raises)
other_shape = spec(kernel=double, reference=lambda x: x[1:])
reference_exits = spec(kernel=double, reference=lambda x: os._exit(0))
other_inputs = spec(kernel=lambda a: a)
no_elements = spec(kernel=double, dims={"n": Dim(0, 0)})
no_outputs = spec(kernel=lambda x: (), reference=lambda x: ())
no_such_type = spec(kernel=double, dtypes=("bfloat16",))
""",
    "syntax.py": "this is no Python\n",
    "empty.py": "nothing = 1\n",
    "endless.py": "while True: pass\n",
}


@pytest.fixture(scope="module")
def server(triton_server: ForkServer) -> ForkServer:
    return triton_server


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("specs")
    for name, text in SPECS.items():
        (folder / name).write_text(text if name in ("syntax.py", "empty.py") else HEAD + text)
    return folder


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("results")
    return Settings(
        Options(reducing=6),
        limits=Limits(seconds=2, loading=3),
        jobs=2,
        store=str(folder / "campaign.db"),
        replays=str(folder / "replays"),
    )


@pytest.fixture(scope="module")
def verdicts(server: ForkServer, specs: Path, settings: Settings) -> dict[str, Verdict]:
    """All operators of all files, put to the test together."""
    campaign = Campaign(settings, server)
    tasks = campaign.tasks([str(specs), str(specs / "missing.py")])
    found = campaign.run(tasks)
    assert exit_status(found) == 2
    return {verdict.name or Path(verdict.path).name: verdict for verdict in found}


def test_everything_gets_a_verdict_whatever_others_do(verdicts: dict[str, Verdict]) -> None:
    words = {n: "problem" if v.problem else v.verdict for n, v in verdicts.items()}
    assert words == {
        "good": "pass", "unwritten": "fail", "tripled": "fail", "hangs": "fail", "exits": "fail",
        "writes_inputs": "fail", "reference_raises": "problem", "other_shape": "problem",
        "reference_exits": "problem", "other_inputs": "problem", "no_elements": "problem",
        "no_outputs": "problem", "no_such_type": "problem", "syntax.py": "problem",
        "empty.py": "problem", "endless.py": "problem", "missing.py": "problem",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [("tripled", "reference"), ("hangs", "hang"), ("exits", "exit"), ("writes_inputs", "canaries")],
)
def test_each_failure_is_told_as_what_it_is(
    verdicts: dict[str, Verdict], name: str, kind: str
) -> None:
    (failure,) = verdicts[name].failures
    assert failure.shown is not None
    assert failure.shown.kind == kind


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reference_raises", "not implemented for odd sizes"),
        ("other_shape", "output 0 has the shape (49,), the reference (48,)"),
        ("reference_exits", "the reference: the process ended itself with exit status 0"),
        ("other_inputs", "its kernel takes (a), not the inputs x by name"),
        ("no_elements", "the outputs hold no elements at {'n': 0}"),
        ("no_outputs", "the operator has no outputs"),
        ("no_such_type", "numpy has no bfloat16, which x is to be of"),
        ("syntax.py", "syntax.py:1"),
        ("empty.py", "no operators"),
        ("endless.py", "endless.py: loading it: no end after 3 s"),
        ("missing.py", "no such file"),
    ],
)
def test_each_problem_says_what_to_correct(
    verdicts: dict[str, Verdict], name: str, words: str
) -> None:
    assert words in verdicts[name].problem


def test_the_smallest_failing_size_is_found(verdicts: dict[str, Verdict]) -> None:
    (failure,) = verdicts["unwritten"].failures
    assert failure.shown is not None
    assert failure.shown.case.dims == {"n": 1}
    assert verdicts["unwritten"].runs_on == "numpy"


def test_a_second_campaign_runs_nothing_that_is_decided(
    server: ForkServer, specs: Path, settings: Settings, verdicts: dict[str, Verdict],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(Campaign, "_decided", lambda *_: pytest.fail("it was decided before"))
    again = Campaign(settings, server).decide(Task(str(specs / "wrong.py"), "tripled"))
    assert again._replace(seconds=0) == verdicts["tripled"]._replace(seconds=0)


def test_changed_code_is_put_to_the_test_again(
    server: ForkServer, settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "spec.py"
    path.write_text(HEAD + "scaled = spec(kernel=lambda x: x * 3)\n")
    campaign = Campaign(settings, server)
    assert campaign.decide(Task(str(path), "scaled")).verdict == "fail"
    path.write_text(HEAD + "scaled = spec(kernel=lambda x: x * 2)\n")
    assert campaign.decide(Task(str(path), "scaled")).verdict == "pass"


def test_a_replayed_run_is_the_same_to_the_bit(
    server: ForkServer, verdicts: dict[str, Verdict]
) -> None:
    (failure,) = verdicts["tripled"].failures
    replay = read_replay(failure.replay)
    again = run_again(replay, server)
    assert again.differences == ()
    assert again.outcome.outputs_key == failure.shown.outputs_key != ""  # type: ignore[union-attr]
    other = again.outcome._replace(inputs_key="0", outputs_key="0", status="pass", kind="")
    told = compared(replay, other, replay.sources)
    assert not told.is_same_run
    assert told.differences == (
        "the inputs are not the same bytes", "the outputs are not the same bytes",
        "it was fail (reference), now it is pass",
    )  # fmt: skip


def test_of_a_run_that_took_its_process_along_the_inputs_are_the_same(
    server: ForkServer, verdicts: dict[str, Verdict]
) -> None:
    (failure,) = verdicts["exits"].failures
    replay = read_replay(failure.replay)
    assert replay.outcome.inputs_key != ""
    again = run_again(replay, server)
    assert (again.differences, again.outcome.inputs_key) == ((), replay.outcome.inputs_key)


def test_replay_files_that_cannot_be_read_say_why(
    verdicts: dict[str, Verdict], tmp_path: Path
) -> None:
    (failure,) = verdicts["tripled"].failures
    told = json.loads(Path(failure.replay).read_text())
    path = tmp_path / "replay.json"
    path.write_text(json.dumps({**told, "version": 7}))
    with pytest.raises(ReplayError, match=r"of version 7; this ptxlint .* reads version 1"):
        read_replay(str(path))
    path.write_text(json.dumps({"version": 1}))
    with pytest.raises(ReplayError, match="damaged"):
        read_replay(str(path))
    case = told["outcome"]["case"]
    for damaged, words in (
        ({"runner": "abacus"}, "runner 'abacus' is none of emulator, cuda, numpy"),
        ({"arch": "sm_7"}, "'sm_7'"),
        ({"outcome": {**told["outcome"], "case": {**case, "seed": "a"}}}, "seed is 'a'"),
        ({"outcome": {**told["outcome"], "case": {**case, "checks": ["luck"]}}}, "check 'luck'"),
        ({"outcome": None}, "it holds no run"),
        ({"operator": [1]}, "damaged"),
    ):
        path.write_text(json.dumps({**told, **damaged}))
        with pytest.raises(ReplayError, match=words):
            read_replay(str(path))
    path.write_text("[" * 100_000)
    with pytest.raises(ReplayError, match="no replay file"):
        read_replay(str(path))
    path.write_text("{}")
    with pytest.raises(ReplayError, match="no replay file"):
        read_replay(str(path))
    with pytest.raises(ReplayError, match="No such file"):
        read_replay(str(tmp_path / "missing.json"))


def test_outcomes_are_kept_as_they_come(settings: Settings, verdicts: dict[str, Verdict]) -> None:
    assert verdicts["good"].cases == 3
    assert Path(settings.store).stat().st_size > 0
    Store(settings.store).close()


SLOW_SPEC = """
import time

def logged(x):
    with open(LOG, "a") as log:
        log.write(f"{x.dtype} {len(x)} {float(x[0]) if len(x) else 0!r}\\n")
    time.sleep(0.2)
    return x * (2 if len(x) < 3 else 3)

one, two, three = (spec(kernel=logged, name=name) for name in ("one", "two", "three"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 5])
def test_a_killed_campaign_goes_on(tmp_path: Path, after: int) -> None:
    """kill -9 behind some finished runs: none of them is lost, and none is made again."""

    def run(folder: Path, *, kill_after: int = 0) -> tuple[dict[str, Any], list[str]]:
        folder.mkdir(exist_ok=True)
        log, store = folder / "log.txt", folder / "campaign.db"
        spec = tmp_path / "spec.py"
        spec.write_text(HEAD + f"LOG = {str(log)!r}\n" + SLOW_SPEC)
        command = [
            sys.executable, "-m", "ptxlint", "gate", str(spec), "--store", str(store),
            "--runner", "emulator", "--jobs", "1", "--format", "json",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while kill_after and _finished(store) < kill_after and process.poll() is None:
            time.sleep(0.02)
        if kill_after:
            process.kill()
            process.wait()
            return {}, []
        told = json.loads(process.communicate(timeout=120)[0])
        return told["verdicts"], log.read_text().splitlines()

    whole, calls = run(tmp_path / "whole")
    run(tmp_path / "cut", kill_after=after)
    finished = _finished(tmp_path / "cut" / "campaign.db")
    assert finished >= after
    verdicts, calls_of_both = run(tmp_path / "cut")
    assert [v["verdict"] for v in verdicts] == ["fail"] * 3
    assert _without_seconds(verdicts) == _without_seconds(whole)
    # The run that was cut off is the one that may be there twice.
    assert len(calls) <= len(calls_of_both) <= len(calls) + 1
    assert set(calls_of_both) == set(calls)


def _finished(store: Path) -> int:
    if not store.exists():
        return 0
    with contextlib.closing(sqlite3.connect(store)) as database:
        try:
            ((count,),) = database.execute("SELECT COUNT(*) FROM outcomes")
        except sqlite3.Error:
            return 0
    return int(count)


def _without_seconds(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: _without_seconds(part) for key, part in told.items() if key != "seconds"}
    return [_without_seconds(part) for part in told] if isinstance(told, list) else told
