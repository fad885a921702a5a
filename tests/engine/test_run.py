"""Runs: crashes, merging, fingerprints, architectures, metadata, processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ptxlint
from ptxlint.engine.fingerprint import normalise
from ptxlint.engine.options import Options
from ptxlint.engine.registry import Registry, default_registry
from ptxlint.engine.run import run
from ptxlint.facts import Analysis, Facts, KernelMetadata
from ptxlint.frontends.discovery import Input, discover
from ptxlint.rulekit import Evidence, Hit, Rule, Sample, Verdict

FIXTURES = Path(__file__).parents[2] / "fixtures" / "ptx"
KERNEL = """\
.version 8.8
.target {target}
.address_size 64
.visible .entry {name}(.param .u64 out)
{{
    .reg .b64 %rd<9>;
    .reg .f32 %f<2>;
    ld.param.u64 {r1}, [out];
    mov.f32 %f0, 0f3F800000;
{extra}    cvt.f64.f32 {r2}, %f0;
    mul.f64 {r3}, {r2}, {r2};
    cvt.rn.f32.f64 %f1, {r3};
    st.global.f32 [{r1}], %f1;
    ret;
}}
"""


def kernel(**parts: str) -> str:
    """A kernel with one NUM407 finding."""
    defaults = {"target": "sm_80", "name": "k", "r1": "%rd1", "r2": "%rd2", "r3": "%rd3"}
    return KERNEL.format(**{**defaults, "extra": "", **parts})


class Broken(Analysis[int]):
    """An analysis that crashes."""

    name = "broken"

    def run(self, facts: Facts) -> int:
        """Crash at some instruction."""
        for instr in facts.function.instrs:
            if instr.opcode == "mul":
                return {}["missing"]  # type: ignore[no-any-return]
        return 0


def make_rule(identifier: str, body: Any) -> type[Rule]:
    """A rule whose `check` is `body`."""

    class Made(Rule):
        id = identifier
        name = f"made-{identifier.lower()}"
        severity = "warning"
        confidence = "high"
        category = "masking"
        family = "guard"
        summary = why = fix = "for tests"
        bad = (Sample("x", f"ret; //~ {identifier}"),)
        good = (Sample("x", "ret;"),)

        def check(self, fn: Any, facts: Any) -> Iterator[Hit | Verdict]:
            return body(fn, facts)  # type: ignore[no-any-return]

    return Made


def _run(text: str, *bodies: Any) -> ptxlint.Report:
    registry = Registry()
    for number, body in enumerate(bodies):
        registry.add(make_rule(f"TST90{number}", body), "test")
    return run([Input("k.ptx", text)], Options(), registry=registry)


def _crash(fn: Any, facts: Any) -> Iterator[Hit]:
    for instr in fn.instrs:
        if instr.opcode == "mul":
            raise KeyError("nope")
        if instr.opcode == "cvt":
            yield Hit("seen before the crash", instr)


def _every_store(fn: Any, facts: Any) -> Iterator[Hit]:
    for instr in fn.instrs:
        if instr.opcode == "st":
            yield Hit("a store", instr)


def test_a_crash_is_a_finding_and_the_others_finish() -> None:
    report = _run(kernel(), _crash, _every_store)
    found = {f.rule: f for f in report.findings}
    assert set(found) == {"TST900", "TST901", "INTERNAL"}
    crash = found["INTERNAL"]
    assert "rule TST900 made-tst900 crashed in k: KeyError: 'nope'" in crash.message
    assert crash.place.line == 11
    assert crash.kernel == "k"
    assert "test_run.py:" in crash.help
    assert report.exit_code == 2


@pytest.mark.parametrize(
    "body",
    [
        lambda fn, facts: None,
        lambda fn, facts: iter(["text"]),
        lambda fn, facts: iter([Hit("x", severity="fatal")]),
        lambda fn, facts: iter([Verdict("maybe", "x")]),
        lambda fn, facts: iter([Verdict("open", "x", evidence=(Evidence("maybe", "x"),))]),
        lambda fn, facts: 1 / 0,
        lambda fn, facts: (_ for _ in ()).throw(RecursionError()),
        lambda fn, facts: (_ for _ in ()).throw(MemoryError()),
    ],
)
def test_whatever_a_rule_does_wrong_is_a_finding(body: Any) -> None:
    report = _run(kernel(), body, _every_store)
    assert sorted(f.rule for f in report.findings) == ["INTERNAL", "TST901"]
    assert report.exit_code == 2


def test_a_shared_crash_is_told_once() -> None:
    def first(fn: Any, facts: Any) -> Iterator[Hit]:
        facts.get(Broken)
        yield from ()

    report = _run(kernel(), first, first, _every_store)
    internal = [f for f in report.findings if f.rule == "INTERNAL"]
    assert len(internal) == 1
    assert internal[0].place.line == 11
    assert "rule TST901 made-tst901 met it too" in internal[0].help


def test_a_keyboard_interrupt_is_no_crash() -> None:
    def body(fn: Any, facts: Any) -> Iterator[Hit]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(kernel(), body)


def test_verdicts_become_obligations() -> None:
    def body(fn: Any, facts: Any) -> Iterator[Verdict]:
        yield Verdict("proved", "all is well", assumes=("finite data",))
        yield Verdict("open", "stride unknown", fn.instrs[0], {"n": [1023]})

    report = _run(kernel(), body)
    assert [(o.status, o.rule, o.kernel, o.archs) for o in report.obligations if o.rule] == [
        ("proved", "TST900", "k", ("sm_80",)),
        ("open", "TST900", "k", ("sm_80",)),
    ]
    assert report.obligations[-1].suggest == {"n": [1023]}
    assert report.exit_code == 0


def test_every_kernel_has_one_verdict_on_what_only_a_reference_can_tell() -> None:
    texts = [kernel(name="a") + kernel(name="b").partition("64\n")[2], kernel(name="a")]
    report = ptxlint.check(
        [ptxlint.SourceText(text, f"{at}.ptx") for at, text in enumerate(texts)], select="NUM407"
    )
    found = [o for o in report.obligations if o.family == "semantics"]
    assert [(o.kernel, o.status, o.rule, o.archs) for o in found] == [
        ("a", "open", "", ("sm_80",)),
        ("b", "open", "", ("sm_80",)),
    ]
    assert found[0].reason == (
        "wrong constant or missing operation: no reference and no baseline has spoken"
    )


def test_verdicts_carry_what_they_rest_on() -> None:
    def body(fn: Any, facts: Any) -> Iterator[Verdict]:
        load = fn.instrs[0]
        parts = (
            Evidence("open", "the lanes may hold 1", load, {"guard": "n - i >= 1", "value": "1"}),
            Evidence("proved", "the lanes hold 0"),
        )
        yield Verdict("open", "the lanes may hold 1", load, evidence=parts)

    report = _run(kernel(), body)
    assert report.to_dict()["obligations"][-1]["evidence"] == [
        {
            "status": "open",
            "reason": "the lanes may hold 1",
            "line": 8,
            "source": None,
            "details": {"guard": "n - i >= 1", "value": "1"},
        },
        {"status": "proved", "reason": "the lanes hold 0", "line": None, "source": None,
         "details": {}},
    ]  # fmt: skip


def _fingerprint(text: str) -> list[str]:
    findings = ptxlint.check(ptxlint.SourceText(text, "k.ptx"), select="NUM407").findings
    assert [f.rule for f in findings] == ["NUM407"]
    return [f.fingerprint for f in findings]


def test_fingerprints_survive_what_does_not_matter() -> None:
    base = _fingerprint(kernel())
    assert _fingerprint(kernel(r1="%rd7", r2="%rd5", r3="%rd6")) == base
    assert _fingerprint(kernel(extra="\n\n// a comment\n\n")) == base
    assert _fingerprint(kernel(target="sm_90")) == base
    debug = kernel(extra="    .loc 1 7 3\n") + '.file 1 "nowhere/k.py"\n'
    assert _fingerprint(debug) == base


def test_fingerprints_tell_kernels_apart() -> None:
    assert _fingerprint(kernel(name="other")) != _fingerprint(kernel())


def test_equal_findings_of_one_kernel_are_numbered() -> None:
    def body(fn: Any, facts: Any) -> Iterator[Hit]:
        for instr in fn.instrs:
            if instr.opcode == "cvt":
                yield Hit(f"a conversion of {instr.uses[0]!r}", instr)

    findings = _run(kernel(), body).findings
    assert len(findings) == 2
    assert len({f.fingerprint for f in findings}) == 2


def test_normalise_blanks_registers_and_labels_only() -> None:
    assert normalise("%r12 and %rd3 at $L__BB0_4 by 16") == "%r and %rd at $L by 16"


def test_the_same_finding_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for target in ("sm_100", "sm_80", "sm_90a"):
        (tmp_path / f"{target}.ptx").write_text(kernel(target=target))
    (tmp_path / "zz.ptx").write_text(kernel(r2="%rd5"))
    (tmp_path / "other.ptx").write_text(kernel(name="other"))
    findings = ptxlint.check(".", select="NUM407").findings
    assert [(f.kernel, f.archs, len(f.paths)) for f in findings] == [
        ("other", ("sm_80",), 1),
        ("k", ("sm_80", "sm_90a", "sm_100"), 4),
    ]
    assert len(findings[1].occurrences) == 3


def test_equal_findings_of_one_python_line_are_told_once() -> None:
    def body(fn: Any, facts: Any) -> Iterator[Hit]:
        for instr in fn.instrs:
            if instr.opcode in ("cvt", "mul"):
                yield Hit("a conversion", instr)

    text = kernel(extra="    .loc 1 7 3\n") + '.file 1 "nowhere/k.py"\n'
    (finding,) = _run(text, body).findings
    assert finding.place.source is not None
    assert finding.place.source[:3] == ("nowhere/k.py", 7, 3)
    assert [place.line for place in finding.occurrences] == [12, 13]


@pytest.mark.parametrize(
    ("arch", "files", "code"),
    [
        ("", 3, 1),
        ("sm_90", 1, 1),
        ("90a", 1, 1),
        ("sm_80,sm_100", 2, 1),
        ("sm_90f", 0, 2),
        ("sm_75", 0, 2),
    ],
)
def test_arch_filters_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, files: int, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    for target in ("sm_80", "sm_90a", "sm_100"):
        (tmp_path / f"{target}.ptx").write_text(kernel(target=target))
    report = ptxlint.check(".", arch=arch, select="NUM407")
    assert (report.summary.files, report.exit_code) == (files, code)
    assert report.summary.files + report.summary.skipped == 3
    if not files:
        (finding,) = report.findings
        assert finding.help == "found: sm_80, sm_90a, sm_100"


def test_a_bad_architecture_is_refused() -> None:
    with pytest.raises(ptxlint.TargetNameError, match="write for example sm_90"):
        ptxlint.check(ptxlint.SourceText(kernel()), arch="sm90x")


def _metadata_seen(text: str, path: str) -> list[int | None]:
    seen: list[int | None] = []

    def body(fn: Any, facts: Any) -> Iterator[Hit]:
        seen.append(facts.metadata.num_warps if facts.metadata else None)
        yield from ()

    registry = Registry()
    registry.add(make_rule("TST900", body), "test")
    run([Input(path, text)], Options(), registry=registry)
    return seen


def test_metadata_beside_a_kernel_reaches_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    (tmp_path / "k.json").write_text(json.dumps({"name": "k", "num_warps": 8, "shared": 16}))
    assert _metadata_seen(kernel(), str(path)) == [8]
    # A second kernel of another name is not meant by it; an only kernel is, whatever its name.
    two = kernel() + kernel(name="b").split("64\n", 1)[1]
    assert _metadata_seen(two, str(path)) == [8, None]
    assert _metadata_seen(kernel(name="b"), str(path)) == [8]
    (tmp_path / "k.json").write_text(json.dumps({"child_paths": {}}))
    assert _metadata_seen(kernel(), str(path)) == [None]


def test_broken_metadata_is_told_and_the_kernel_checked(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(kernel())
    (tmp_path / "k.json").write_text("{")
    report = ptxlint.check(tmp_path, select="NUM407")
    assert sorted((f.rule, f.severity) for f in report.findings) == [
        ("INPUT", "warning"),
        ("NUM407", "warning"),
    ]
    assert report.exit_code == 1


def test_per_path_ignores_match_ptx_and_python_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "k.ptx"
    path.write_text(kernel(extra="    .loc 1 7 3\n") + '.file 1 "lib/k.py"\n')

    def found(glob: str, *rules: str) -> list[str]:
        config = ptxlint.Config(per_path_ignores=((glob, rules),), root=".")
        return [f.rule for f in ptxlint.check(path, config=config, select="NUM407").findings]

    assert found("other/*", "NUM407") == ["NUM407"]
    assert found("sub/*", "RES103") == ["NUM407"]
    assert found("sub/*", "NUM") == []
    assert found("*/k.ptx", "stray-f64") == []
    assert found("lib/*.py", "ALL") == []


def _plain(report: ptxlint.Report) -> dict[str, Any]:
    data = report.to_dict()
    del data["summary"]["seconds"]
    return data


def test_processes_change_nothing(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"{number}.ptx").write_text(kernel(name=f"k{number}"))
    (tmp_path / "bad.ptx").write_bytes(b"\x00\x01\x02\x03")
    alone = ptxlint.check(tmp_path)
    assert _plain(ptxlint.check(tmp_path, jobs=2)) == _plain(alone)
    assert alone.exit_code == 2


def test_processes_work_beside_threads(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.ptx").write_text(kernel(name=f"k{number}"))
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert ptxlint.check(tmp_path, jobs=2).summary.kernels == 3
    finally:
        stop.set()
        thread.join()


def test_a_dying_worker_costs_only_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(fn: Any, facts: Any) -> Iterator[Hit]:
        if fn.name == "k2":
            os.kill(os.getpid(), signal.SIGKILL)
        yield from _every_store(fn, facts)

    registry = Registry()
    registry.add(make_rule("TST900", die), "test")
    monkeypatch.setattr("ptxlint.engine.workers.default_registry", lambda: registry)
    # Only a forked worker has this registry.
    forked = multiprocessing.get_context("fork")
    monkeypatch.setattr("ptxlint.engine.workers._context", lambda: forked)
    for number in range(5):
        (tmp_path / f"{number}.ptx").write_text(kernel(name=f"k{number}"))
    report = run(discover([str(tmp_path)]), Options(), jobs=2, registry=registry)
    found = [(f.rule, Path(f.place.path).name) for f in report.findings]
    assert found == [
        ("TST900", "0.ptx"),
        ("TST900", "1.ptx"),
        ("INTERNAL", "2.ptx"),
        ("TST900", "3.ptx"),
        ("TST900", "4.ptx"),
    ]


def test_checks_are_reentrant(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(kernel())
    results: list[dict[str, Any]] = []

    def check() -> None:
        results.append(_plain(ptxlint.check(tmp_path)))

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(result == results[0] for result in results)


def test_sources_of_all_kinds(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(kernel())
    text = ptxlint.SourceText(kernel(name="other"), "memory.ptx")
    report = ptxlint.check([tmp_path / "k.ptx", text, str(tmp_path)], select=["NUM407,RES103"])
    assert sorted(k.name for k in report.kernels) == ["k", "other"]
    assert report.exit_code == 1
    with pytest.raises(ptxlint.SelectionError):
        ptxlint.check(text, select="NOPE")
    with pytest.raises(ValueError, match="neither 'memo' nor 'lark'"):
        ptxlint.check(text, parser="x")
    with pytest.raises(ValueError, match="jobs"):
        ptxlint.check(text, jobs=-1)


def test_findings_can_be_sent_between_processes() -> None:
    report = ptxlint.check(ptxlint.SourceText(kernel(), "k.ptx"))
    assert pickle.loads(pickle.dumps(report.findings)) == report.findings


def test_statistics_time_every_stage() -> None:
    report = ptxlint.check(ptxlint.SourceText(kernel(), "k.ptx"), statistics=True)
    assert {"parse", "verify", "rule NUM407", "rule RES103"} <= set(report.timings)
    assert all(seconds >= 0 for seconds in report.timings.values())


def test_every_fixture_is_checked_without_a_crash() -> None:
    registry = default_registry()
    report = run(discover([str(FIXTURES / "sm_90")]), Options(), registry=registry)
    assert report.summary.kernels > 50
    internal = [f.message for f in report.findings if f.rule in ("INTERNAL", "INPUT")]
    assert internal == []


def test_metadata_of_a_given_input_wins() -> None:
    seen = []

    def body(fn: Any, facts: Any) -> Iterator[Hit]:
        seen.append(facts.max_threads())
        yield from ()

    registry = Registry()
    registry.add(make_rule("TST900", body), "test")
    item = Input("k.ptx", kernel(), KernelMetadata(num_warps=2))
    run([item], Options(), registry=registry)
    assert seen == [64]
