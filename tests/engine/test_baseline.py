"""`ptxlint baseline` and `check --baseline`: what is held back, what is told, what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ptxlint
from ptxlint.cli import main
from ptxlint.engine.baseline.entries import Baseline, FindingEntry, KernelEntry, Measures
from ptxlint.engine.baseline.held import part
from ptxlint.engine.baseline.layout import BaselineError, dump, read_baseline
from ptxlint.engine.baseline.outcome import Outcome
from ptxlint.engine.baseline.update import pruned
from ptxlint.engine.baseline.worse import growths, losses, partners
from ptxlint.engine.fingerprint import by_position
from ptxlint.frontends.ptx import parse
from tests.comparison.two_rows import NEUTRAL, two_rows

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "ptx" / "sm_80"
NAMES = ("softmax_buggy", "flash_attention_buggy", "rmsnorm_eps_fp64", "matmul_dot_fp16", "gelu")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder of kernels, some of which have findings."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for name in NAMES:
        for file in FIXTURES.glob(f"{name}.*"):
            shutil.copy(file, folder)
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as raised:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    code = raised.value.code
    assert isinstance(code, int)
    return code, out, err


def recorded(capsys: pytest.CaptureFixture[str], cache: Path, name: str = "b.json") -> Path:
    target = cache.parent / name
    code, out, err = run(capsys, "baseline", cache, "--output", target, "--no-config")
    assert (code, err) == (0, "")
    assert out.startswith(f"{target}: {len(NAMES)} kernels, ")
    return target


def renamed(text: str, seed: int) -> str:
    """A rebuild with other names of registers, labels and parameters, shifted lines and another
    file name; every third one without debugging information."""
    text = re.sub(r"%(rd|rs|r|p|f|fd)(\d+)", lambda m: f"%{m[1]}{int(m[2]) + seed}", text)
    text = re.sub(r"%(\w+)<(\d+)>", lambda m: f"%{m[1]}<{int(m[2]) + seed}>", text)
    text = text.replace("$L__BB", f"$L__B{seed}_").replace("_param_", f"_p{seed}_")
    if seed % 3 == 0:
        return re.sub(r"\n\s*\.(loc|file)\b[^\n]*", "", text)
    text = re.sub(r"\.loc\t(\d+) (\d+)", lambda m: f".loc\t{m[1]} {int(m[2]) + seed}", text)
    return re.sub(r'"[^"]*\.py"', f'"v{seed}.py"', text)


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_nothing_is_new_right_after_the_baseline(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, _, _ = run(capsys, "check", cache, "--no-config")
    target = recorded(capsys, cache)
    code, out, _ = run(capsys, "check", cache, "--no-config", "--baseline", target)
    assert (before, code) == (1, 0)
    assert re.match(r"no findings in 5 kernels of 5 files \([3-9] findings of the baseline; ", out)


@pytest.mark.parametrize("seed", range(1, 11))
def test_rebuilds_have_no_new_finding(
    cache: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    target = recorded(capsys, cache)
    for file in cache.glob("*.ptx"):
        file.write_text(renamed(file.read_text(), seed))
    report = ptxlint.check(cache, baseline=target)
    assert [f"{f.rule} {f.message}" for f in report.findings] == []
    assert report.baseline is not None
    assert report.baseline.absent == ()
    known = {(e.kernel, e.rule, e.fingerprint) for e in read_baseline(str(target)).findings}
    assert {(f.kernel, f.rule, f.fingerprint) for f in report.baseline.held} >= known


def test_the_file_is_the_same_for_the_same_kernels(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = recorded(capsys, cache).read_bytes()
    (cache / "gelu.ptx").rename(cache / "zz.ptx")
    (cache / "gelu.json").rename(cache / "zz.json")
    assert recorded(capsys, cache).read_bytes() == first
    lines = first.decode().splitlines()
    entries = [line for line in lines if line.startswith('{"kernel"')]
    assert len(lines) - len(entries) in (7, 8)
    schema = json.loads((ROOT / "docs" / "baseline.schema.json").read_text())
    jsonschema.validate(json.loads(first), schema)
    assert dump(read_baseline(str(cache.parent / "b.json"))).encode() == first


def test_a_new_finding_and_a_lost_proof_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, target = tmp_path / "k.ptx", tmp_path / "b.json"
    shutil.copy(FIXTURES / "softmax.ptx", file)
    run(capsys, "baseline", file, "--output", target, "--no-config")
    shutil.copy(FIXTURES / "softmax_buggy.ptx", file)
    code, out, _ = run(capsys, "check", file, "--no-config", "--baseline", target)
    assert code == 1
    assert "error[MSK201]" in out
    assert "BAS901] MSK201 fill-not-neutral: 1 proved in the baseline, 1 refuted now" in out
    found = json.loads(
        run(capsys, "check", file, "--no-config", "--baseline", target, "--format", "json")[1]
    )
    assert [f["rule"] for f in found["findings"]] == ["MSK201", "BAS901"]
    assert found["baseline"]["unchanged"] == []


def test_a_new_kernel_is_checked_in_full(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = recorded(capsys, cache)
    edited(cache / "softmax_buggy.ptx", "softmax_kernel", "another_kernel")
    report = ptxlint.check(cache, baseline=target)
    assert [(f.rule, f.kernel) for f in report.findings if f.kernel] == [
        ("MSK201", "another_kernel")
    ]
    assert report.baseline is not None
    assert [entry.kernel for entry in report.baseline.unmet] == ["softmax_kernel"]
    (stale,) = (f for f in report.findings if not f.kernel)
    assert (stale.rule, stale.severity) == ("BAS903", "note")
    assert stale.message == "1 kernel of the baseline not checked: softmax_kernel sm_80"


def test_another_architecture_is_a_new_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, target = FIXTURES / "softmax_buggy.ptx", tmp_path / "b.json"
    run(capsys, "baseline", file, "--output", target, "--no-config")
    other = FIXTURES.parent / "sm_90" / "softmax_buggy.ptx"
    report = ptxlint.check([file, other], baseline=target)
    assert [(f.rule, f.archs) for f in report.findings] == [("MSK201", ("sm_90a",))]


def test_what_is_gone_is_told_and_pruned(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = recorded(capsys, cache)
    before = read_baseline(str(target))
    shutil.copy(FIXTURES / "softmax.ptx", cache / "softmax_buggy.ptx")
    code, out, _ = run(capsys, "check", cache, "--no-config", "--baseline", target)
    assert code == 0
    assert "note[BAS903] 1 finding of the baseline no longer found: MSK201 in softmax_kernel" in out
    # The entry itself is quoted.
    assert re.search(r'\d+ \| \{"kernel": "softmax_kernel", "archs"', out)
    assert run(capsys, "baseline", cache, "--update", "--output", target, "--no-config")[0] == 0
    after = read_baseline(str(target))
    assert set(before.findings) - set(after.findings) == {
        entry for entry in before.findings if entry.rule == "MSK201"
    }
    code, out, _ = run(capsys, "check", cache, "--no-config", "--baseline", target)
    assert (code, "BAS903" in out) == (0, False)


def test_an_update_takes_in_nothing_new_and_nothing_worse(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(FIXTURES / "softmax.ptx", cache / "softmax_buggy.ptx")
    target = recorded(capsys, cache)
    before = target.read_text()
    shutil.copy(FIXTURES / "softmax_buggy.ptx", cache)
    assert run(capsys, "baseline", cache, "--update", "--output", target, "--no-config")[0] == 0
    assert target.read_text() == before
    report = ptxlint.check(cache, baseline=target)
    assert {f.rule for f in report.findings} == {"MSK201", "BAS901"}


def test_rules_that_did_not_run_leave_their_entries(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = recorded(capsys, cache)
    report = ptxlint.check(cache, baseline=target, select="MSK202")
    assert report.baseline is not None
    assert report.baseline.absent == ()
    assert report.findings == ()


def test_sarif_says_what_is_new_known_and_gone(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = recorded(capsys, cache)
    shutil.copy(FIXTURES / "softmax.ptx", cache / "softmax_buggy.ptx")
    shutil.copy(FIXTURES / "leaky_relu_buggy.ptx", cache)
    shutil.copy(FIXTURES / "flash_attention_buggy.ptx", cache / "x.ptx")
    edited(cache / "x.ptx", "flash_attention_kernel", "x_kernel")
    _, out, _ = run(capsys, "check", cache, "--no-config", "--baseline", target, "--format=sarif")
    log = json.loads(out)
    schema = json.loads((ROOT / "tests/data/sarif-schema-2.1.0.json").read_text())
    jsonschema.validate(log, schema)
    states: dict[str, set[str]] = {}
    for result in log["runs"][0]["results"]:
        states.setdefault(result["baselineState"], set()).add(result["ruleId"])
    assert states["absent"] == {"MSK201"}
    assert "NUM402" in states["unchanged"]
    assert "NUM402" in states["new"]
    _, out, _ = run(capsys, "check", cache, "--no-config", "--format=sarif")
    assert "baselineState" not in out


def test_settings_name_the_baseline(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache.parent / "pyproject.toml").write_text('[tool.ptxlint]\nbaseline = "known.json"\n')
    code, _, err = run(capsys, "check", cache)
    assert code == 2
    assert "known.json: there is no such baseline; `ptxlint baseline PATH" in err
    code, out, _ = run(capsys, "baseline", cache)
    assert (code, (cache.parent / "known.json").is_file()) == (0, True)
    assert "known.json: 5 kernels" in out
    assert run(capsys, "check", cache)[0] == 0
    assert run(capsys, "check", cache, "--no-baseline")[0] == 1
    (cache.parent / "pyproject.toml").write_text("[tool.ptxlint]\nbaseline = 3\n")
    code, _, err = run(capsys, "check", cache)
    assert (code, "'baseline' must be the path of a file, not 3" in err) == (2, True)


GOOD: dict[str, Any] = {"format": "ptxlint-baseline", "version": 1, "kernels": [], "findings": []}
KERNEL = {
    "kernel": "k", "arch": "sm_80", "identity": "a", "shape": "b", "instructions": 1,
    "accesses": 1, "guarded": 1, "verdicts": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"format": "ptxlint-baseline",\n<<<<<<< ours\n', r"b\.json:2:1: the baseline is no JSON"),
        ("", r"b\.json:1:1: the baseline is no JSON"),
        ("[" * 100_000, "not a baseline"),
        ("[]", 'not a baseline: "format" is not "ptxlint-baseline"'),
        ('{"version": 1, "findings": []}', "not a baseline"),
        (json.dumps(GOOD | {"version": 2}), "ptxlint reads version 1; update ptxlint, or write"),
        (json.dumps(GOOD | {"version": 0}), "of version 0, .* reads version 1; write it anew"),
        (json.dumps(GOOD | {"version": True}), "of version True"),
        (json.dumps(GOOD | {"kernels": {}}), "kernels must be a list"),
        (json.dumps(GOOD | {"kernels": [3]}), r"kernels\[0\] must be an object"),
        (
            json.dumps(GOOD | {"kernels": [KERNEL | {"guarded": -1}]}),
            r"kernels\[0\]\.guarded must be a number, 0 or greater",
        ),
        (
            json.dumps(GOOD | {"kernels": [KERNEL | {"verdicts": {"MSK201": {"fine": 1}}}]}),
            r"kernels\[0\]\.MSK201 must count proved, refuted, open",
        ),
        (
            json.dumps(GOOD | {"findings": [{"archs": [], "severity": "fatal"}]}),
            r"findings\[0\]\.severity must be one of error, warning, note",
        ),
    ],
)  # fmt: skip
def test_what_is_no_baseline_is_told_and_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    target, kernel = tmp_path / "b.json", FIXTURES / "gelu.ptx"
    target.write_text(text)
    code, _, err = run(capsys, "check", kernel, "--no-config", "--baseline", target)
    assert code == 2
    assert re.search(told, err)
    assert "Traceback" not in err
    with pytest.raises(BaselineError, match=told):
        ptxlint.check(kernel, baseline=target)
    code, _, err = run(capsys, "baseline", kernel, "--no-config", "--output", target)
    assert (code, target.read_text()) == (2, text)
    assert "it was not overwritten; --force does" in err
    code, _, err = run(capsys, "baseline", kernel, "--no-config", "--output", target, "--force")
    assert (code, err) == (0, "")
    assert len(read_baseline(str(target)).kernels) == 1


def test_files_that_cannot_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = FIXTURES / "gelu.ptx"
    code, _, err = run(capsys, "check", kernel, "--no-config", "--baseline", tmp_path / "no.json")
    assert (code, "there is no such baseline" in err) == (2, True)
    code, _, err = run(capsys, "check", kernel, "--no-config", "--baseline", tmp_path)
    assert (code, "cannot read: Is a directory" in err) == (2, True)
    code, _, err = run(capsys, "check", kernel, "--baseline", "x", "--no-baseline")
    assert (code, "exclude each other" in err) == (2, True)
    words = ("baseline", kernel, "--no-config", "--output", tmp_path)
    for more in ((), ("--force",)):
        code, _, err = run(capsys, *words, *more)
        assert code == 2
        assert "Is a directory" in err
    code, _, err = run(capsys, *words[:3], "--update", "--output", tmp_path / "no.json")
    assert (code, "there is no such baseline" in err) == (2, True)
    (tmp_path / "latin.json").write_bytes(b'{"format": "\xe9"}')
    code, _, err = run(
        capsys, "check", kernel, "--no-config", "--baseline", tmp_path / "latin.json"
    )
    assert (code, "no UTF-8 at byte 12" in err) == (2, True)


def test_a_baseline_of_other_kernels_is_a_warning(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = recorded(capsys, cache)
    code, out, _ = run(
        capsys, "check", FIXTURES / "argmax.ptx", "--no-config", "--baseline", target
    )
    assert code == 1
    assert "warning[BAS903] no kernel of this baseline was checked: it is of flash_att" in out


def test_what_cannot_be_read_is_told_and_the_rest_is_written(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cache / "bad.ptx").write_bytes(b"\x7fELF\0")
    target = cache.parent / "b.json"
    code, out, err = run(capsys, "baseline", cache, "--output", target, "--no-config")
    assert code == 2
    assert "bad.ptx:1: " in err
    assert "5 kernels" in out
    code, out, _ = run(capsys, "check", cache, "--no-config", "--baseline", target)
    assert (code, "error[INPUT]" in out) == (2, True)
    code, _, err = run(capsys, "baseline", cache / "bad.ptx", "--output", target, "--no-config")
    assert (code, "no kernel was found in" in err) == (2, True)
    assert len(read_baseline(str(target)).kernels) == 5


def test_a_baseline_without_line_information_holds_for_builds_with_it(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {file: file.read_text() for file in cache.glob("*.ptx")}
    for file, text in kept.items():
        file.write_text(renamed(text, 3))
    target = recorded(capsys, cache)
    assert '"lined": false' in target.read_text()
    assert run(capsys, "check", cache, "--no-config", "--baseline", target)[0] == 0
    for file, text in kept.items():
        file.write_text(text)
    report = ptxlint.check(cache, baseline=target)
    assert report.findings == ()
    assert report.baseline is not None
    assert report.baseline.absent == ()


def entry(name: str, shape: str = "s", size: int = 10, **more: Any) -> KernelEntry:
    numbers = {k: more.pop(k) for k in ("registers", "spills") if k in more}
    guarded = more.pop("guarded", 2)
    return KernelEntry("k", "sm_80", Measures(name, shape, size, 3, guarded, **numbers), **more)


def test_of_several_kernels_of_one_name_the_likeliest_belong_together() -> None:
    same, shaped, near, far = entry("a"), entry("b", "t"), entry("c", "u", 50), entry("d", "v", 90)
    new = [entry("z", "w", 88), entry("y", "w", 52), entry("x", "t", 10), same]
    found = partners([far, near, shaped, same], new)
    assert [found[e] for e in new] == [far, near, shaped, same]
    assert partners([far], [*new, entry("q", "w", 89)])[new[0]] is far
    assert partners([entry("a", is_machine=True)], [entry("b")]) == {}
    assert partners([entry("a")._replace(arch="sm_90a")], [same]) == {}


def test_what_has_no_architecture_is_not_pruned() -> None:
    known = FindingEntry("k", "R", "f", "note")
    kernels = (entry("a")._replace(arch=""),)
    outcome = Outcome("", (), frozenset(), (), (), Baseline(kernels, (known,)))
    assert pruned(Baseline(kernels, (known,)), outcome).findings == (known,)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ((2, 0, 0), (1, 0, 1), "open"), ((1, 0, 0), (0, 1, 0), "refuted"),
        ((0, 0, 1), (0, 1, 0), "refuted"), ((1, 0, 1), (2, 0, 0), ""), ((1, 0, 0), (1, 0, 1), ""),
        ((2, 0, 0), (1, 0, 0), ""), ((0, 1, 0), (1, 0, 0), ""), ((1, 1, 0), (1, 1, 0), ""),
    ],
)  # fmt: skip
def test_verdicts_that_got_worse(
    old: tuple[int, int, int], new: tuple[int, int, int], status: str
) -> None:
    before, after = entry("a", verdicts=(("R", old),)), entry("b", verdicts=(("R", new),))
    assert [loss.status for loss in losses(before, after)] == ([status] if status else [])
    assert losses(before._replace(launches=1), after) == []


@pytest.mark.parametrize(
    ("new", "shape", "is_strange", "found"),
    [
        ("pr", "s", False, [(1, "refuted")]), ("rp", "s", False, []),
        ("pr", "other", False, []), ("pr", "other", True, [(1, "refuted")]),
        ("po", "s", False, [(1, "open")]), ("rrp", "s", True, []),
    ],
)  # fmt: skip
def test_a_verdict_that_got_worse_where_another_got_better(
    new: str, shape: str, is_strange: bool, found: list[tuple[int, str]]
) -> None:
    counts = (("R", (1, 1, 0)),)
    before = entry("a", shape="s", verdicts=counts)._replace(orders=(("R", "rp"),))
    after = entry("b", shape=shape, verdicts=counts)._replace(orders=(("R", new),))
    strange = frozenset({(*after.key, "R")}) if is_strange else frozenset()
    assert [(loss.at, loss.status) for loss in losses(before, after, strange)] == found


def test_a_fault_that_moved_to_another_line_is_not_taken_for_the_known_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, target = tmp_path / "k.ptx", tmp_path / "b.json"
    kernel.write_text(two_rows("0", NEUTRAL))
    run(capsys, "baseline", kernel, "--output", target, "--no-config")
    baseline = read_baseline(str(target))
    assert dict(baseline.kernels[0].orders)["MSK201"] == "rp"
    schema = (ROOT / "docs" / "baseline.schema.json").read_text()
    jsonschema.validate(json.loads(target.read_text()), json.loads(schema))
    check = ("check", kernel, "--baseline", target, "--no-config")
    for text in (two_rows("0", NEUTRAL, line=70), renamed(two_rows("0", NEUTRAL), 3)):
        kernel.write_text(text)
        code, out, _ = run(capsys, *check)
        assert (code, "BAS90" in out) == (0, False), out
    kernel.write_text(two_rows(NEUTRAL, "0"))
    code, out, _ = run(capsys, *check)
    assert code == 1
    assert (
        "warning[BAS901] MSK201 fill-not-neutral: as many as in the baseline, but number 2" in out
    )
    run(capsys, "baseline", kernel, "--output", target, "--update", "--no-config")
    assert run(capsys, *check)[0] == 1


def test_numbers_that_got_worse() -> None:
    before = entry("a", registers=24, spills=0, guarded=3)
    after = entry("b", registers=32, spills=16, guarded=2)
    assert [tuple(g) for g in growths(before, after)] == [
        ("registers", 24, 32), ("spills", 0, 16), ("guarded", 3, 2),
    ]  # fmt: skip
    assert growths(after, before) == []
    assert growths(entry("a"), entry("b", registers=99, spills=99)) == []


def test_a_log_beside_the_file_tells_spills(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = (
        "ptxas info    : Compiling entry function 'gelu_kernel' for 'sm_80'\n"
        "ptxas info    : Function properties for gelu_kernel\n"
        "    {0} bytes stack frame, {0} bytes spill stores, {0} bytes spill loads\n"
        "ptxas info    : Used {1} registers, 400 bytes cmem[0]\n"
    )
    (cache / "gelu.log").write_text(log.format(0, 24))
    target = recorded(capsys, cache)
    (cache / "gelu.log").write_text(log.format(4, 30))
    code, out, _ = run(capsys, "check", cache, "--no-config", "--baseline", target)
    assert code == 1
    assert "warning[BAS902] registers 24 → 30, bytes of spills 0 → 8" in out


def test_a_graver_finding_is_reported() -> None:
    report = ptxlint.check(FIXTURES / "softmax_buggy.ptx")
    (finding,) = report.findings
    known = FindingEntry(finding.kernel, finding.rule, finding.fingerprint, "note", ("sm_80",))
    parted = part([finding], Baseline((), (known,)), lambda f: "")
    assert (parted.new, parted.graver, parted.held) == ([], [finding], [])
    assert part([finding], Baseline((), (known._replace(severity="error"),)), lambda f: "").held
    assert part([finding], Baseline((), (known._replace(archs=("sm_90",)),)), lambda f: "").new


def test_of_equal_findings_the_python_line_tells_which_is_new() -> None:
    (one,) = ptxlint.check(FIXTURES / "softmax_buggy.ptx").findings
    lines = ["x = load(a)", "y = load(b)", "z = load(c)"]
    findings = [
        one._replace(fingerprint=str(at), place=one.place._replace(line=at)) for at in range(3)
    ]
    known = [
        FindingEntry(one.kernel, one.rule, str(at), one.severity, ("sm_80",), line)
        for at, line in enumerate((lines[1], lines[2]))
    ]
    parted = part(findings, Baseline((), tuple(known)), lambda f: lines[f.place.line])
    assert [f.place.line for f in parted.new] == [0]
    assert sorted(f.place.line for f in parted.held) == [1, 2]
    unknown = part(findings, Baseline((), tuple(known)), lambda f: "")
    assert [f.place.line for f in unknown.new] == [2]


def test_fingerprints_call_parameters_by_their_number() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    texts = []
    for first, second in (("k_param_0", "k_param_1"), ("a", "n"), ("a$x", "a")):
        entry_ = f".visible .entry k(.param .u64 {first}, .param .u32 {second})\n{{\nret;\n}}\n"
        (kernel,) = parse(head + entry_).kernels()
        texts.append(by_position(f"{second} is read before {first}, and an a", kernel))
    assert texts[0].startswith("k_param_1 is read before k_param_0")
    assert texts[1].startswith("k_param_1 is read before k_param_0")
    assert texts[2].startswith("k_param_1 is read before k_param_0")
