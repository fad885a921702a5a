"""Every rule against its own samples: exactly the marked lines, nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from ptxlint.engine.registry import Registry, default_registry
from ptxlint.engine.samples import check_sample, expected, mismatches, module_text
from ptxlint.rulekit import Hit, Rule, Sample

REGISTRY: Registry = default_registry()
if REGISTRY.problems:
    # At collection: `-k RULE` would leave a test out, and a rule that is not there has no tests.
    raise pytest.UsageError("\n".join(str(problem) for problem in REGISTRY.problems))
RULES = list(REGISTRY.rules.values())


def _cases(*levels: str) -> list[object]:
    return [
        pytest.param(rule, sample, id=f"{rule.id}-{kind}-{number}")
        for rule in RULES
        for kind, samples in (("bad", rule.bad), ("good", rule.good))
        for number, sample in enumerate(samples)
        if not levels or sample.level in levels
    ]


def test_there_are_rules() -> None:
    assert RULES, "no rules were found: the harness would test nothing"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_has_samples_of_both_kinds(rule: type[Rule]) -> None:
    assert rule.bad
    assert rule.good
    for sample in rule.bad:
        assert any(name == rule.id for name, _ in expected(module_text(sample)))
    for sample in rule.good:
        assert not any(name == rule.id for name, _ in expected(module_text(sample)))


@pytest.mark.parametrize(("rule", "sample"), _cases())
def test_findings_are_exactly_the_marked_ones(rule: type[Rule], sample: Sample) -> None:
    assert mismatches(rule, sample) == []


@pytest.mark.parametrize(("rule", "sample"), _cases())
def test_no_other_rule_warns_unmarked(rule: type[Rule], sample: Sample) -> None:
    marked = expected(module_text(sample))
    stray = [
        f"line {f.place.line}: {f.rule} {f.message}"
        for f in check_sample(rule, sample, alone=False)
        if f.severity != "note" and (f.rule, f.place.line) not in marked
    ]
    assert stray == []


def _ptxas() -> Path | None:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    return path if path.exists() else None


PTXAS = _ptxas()


@pytest.mark.skipif(PTXAS is None, reason="needs the ptxas that Triton ships")
@pytest.mark.parametrize(("rule", "sample"), _cases("ptx"))
def test_the_assembler_takes_the_sample(rule: type[Rule], sample: Sample, tmp_path: Path) -> None:
    source = tmp_path / "sample.ptx"
    source.write_text(module_text(sample))
    target = next(
        line.split()[1].rstrip(",")
        for line in module_text(sample).splitlines()
        if line.strip().startswith(".target")
    )
    done = subprocess.run(
        [str(PTXAS), f"-arch={target}", "-o", str(tmp_path / "out.cubin"), str(source)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


class _Marked(Rule):
    """A rule that reports every `ret`, to test the harness with."""

    id = "TST901"
    name = "every-return"
    severity = "warning"
    confidence = "high"
    category = "masking"
    family = "guard"
    summary = "A return."
    why = "For tests."
    fix = "None."
    bad = (Sample("one", "ret; //~ TST901"),)
    good = (Sample("none", "exit;"),)

    def check(self, fn, facts):  # type: ignore[no-untyped-def]
        """Report each return."""
        for instr in fn.instrs:
            if instr.opcode == "ret":
                yield Hit("a return", instr)


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> type[Rule]:
    registry = Registry()
    registry.add(_Marked, "test")
    monkeypatch.setattr("ptxlint.engine.run.default_registry", lambda: registry)
    return _Marked


def test_harness_sees_a_stray_finding(marked: type[Rule]) -> None:
    assert mismatches(marked, Sample("", "ret;")) == ["line 8: TST901 is reported and not marked"]


def test_harness_sees_a_missing_finding(marked: type[Rule]) -> None:
    sample = Sample("", "exit; //~ TST901")
    assert mismatches(marked, sample) == ["line 8: TST901 is marked and not reported"]


def test_harness_counts_marks(marked: type[Rule]) -> None:
    assert mismatches(marked, Sample("", "ret; ret; //~ TST901")) != []
    assert mismatches(marked, Sample("", "ret; ret; //~ TST901, TST901")) == []


def test_harness_sees_a_fault_of_the_sample(marked: type[Rule]) -> None:
    assert any("PARSE" in line for line in mismatches(marked, Sample("", "ret ret;")))
