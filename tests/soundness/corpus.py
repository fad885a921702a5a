"""The kernels and launches that verdicts are replayed on, in parts, and the judge over them."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.inputs import InputError, RandomInputs
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.judge.criteria import CRITERIA
from ptxlint.dynamic.judge.replay import Contradiction, Criterion, Judge
from ptxlint.dynamic.judge.variations import tuned, varied
from ptxlint.engine.registry import default_registry
from ptxlint.engine.samples import launches_of, metadata_of, module_text
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.ptx import parse
from ptxlint.launch.binding import BindingError
from ptxlint.launches import Argument, Launch, Scalar, Tensor

TESTS = Path(__file__).resolve().parents[1]
FIXTURES = TESTS.parent / "fixtures"
if str(FIXTURES) not in sys.path:
    sys.path.insert(0, str(FIXTURES))

from references import launches as LAUNCHES  # noqa: E402, N812

MOST_CTAS = 4096
MOST_BYTES = 32 << 20
"""Launches that are larger are left out: their verdicts are the same as those of smaller ones, or
rest on numbers that no memory holds."""


_MOST_STEPS = 2_000_000
"""Instructions of threads, loops not counted, that the changed copies of one launch may have."""
_SHARED = 160 << 10
"""Of twins, whose metadata is not at hand: more than they need does no harm."""


MADE_UP = ("HAZ602", "SYN501", "SYN502")


class Subject(NamedTuple):
    """A kernel and what it is launched with. `emulator` raises `UnsupportedError`."""

    name: str
    emulator: Callable[[], Emulator]
    metadata: KernelMetadata | None
    launches: list[Launch]


class Judged(NamedTuple):
    """So many launches were replayed; what was said and what happened, and where they disagree."""

    done: int
    counts: Counter[tuple[str, str, str]]
    wrong: list[Contradiction]

    def __add__(self, other: object) -> Judged:
        assert isinstance(other, Judged)
        return Judged(self.done + other.done, self.counts + other.counts, self.wrong + other.wrong)


NOTHING = Judged(0, Counter(), [])


def judged(
    subject: Subject, changes: int, seed: int = 0, criteria: Sequence[Criterion] = CRITERIA
) -> Judged:
    """Replay the launches of a kernel, each also `changes` times changed; every third one as an
    autotuner makes it."""
    try:
        judge = Judge(subject.emulator(), subject.metadata)
    except UnsupportedError:
        return NOTHING
    random = np.random.default_rng(seed)
    out = NOTHING
    for launch in filter(_is_small, subject.launches):
        few = min(changes, _affordable(judge, launch))
        for number, one in enumerate(varied(launch, random, few)):
            is_tuned = number % 3 == 2 and one.autotuned is None
            changed = tuned(one, random) if is_tuned else one
            try:
                found = judge.replay(changed, RandomInputs(seed), criteria, seed + number)
            except (BindingError, InputError):
                continue
            out += Judged(1, found.counts, found.contradictions)
    return out


def _affordable(judge: Judge, launch: Launch) -> int:
    """How often a launch may be changed: the more it runs, the less often."""
    kernel = judge.emulator.kernel
    x, y, z = launch.grid
    threads = x * y * z * (kernel.max_threads() or 128)
    return max(1, _MOST_STEPS // (threads * len(kernel.instrs)))


def _is_small(launch: Launch) -> bool:
    tensors = {a.storage: a for a in launch.arguments.values() if isinstance(a, Tensor)}
    x, y, z = launch.grid
    size = sum(tensor.storage_bytes for tensor in tensors.values())
    return x * y * z <= MOST_CTAS and size <= MOST_BYTES


# Parts ------------------------------------------------------------------------------------------
def fixture(name: str, arch: str, first: int | None = None, seed: int = 0) -> Subject:
    """A build and (the first) launches of its reference."""
    build = LAUNCHES.emulated.build(name, arch)
    launches = list(LAUNCHES.launches(build, seed))[:first]
    return Subject(
        f"{arch} {name}",
        lambda: LAUNCHES.emulated.emulator(build.path),
        LAUNCHES.metadata(build),
        launches,
    )


def off(name: str, step: int) -> Subject:
    """Launches of a fixture in each of which one size or stride is off by so many."""
    subject = fixture(name, "sm_80", 2)
    launches = []
    for launch in subject.launches:
        for key, argument in launch.arguments.items():
            if isinstance(argument, Scalar) and isinstance(argument.value, int):
                changed = argument._replace(value=argument.value + step)
                launches.append(launch._replace(arguments=launch.arguments | {key: changed}))
    return subject._replace(launches=launches)


def fixtures(arch: str) -> Iterator[Subject]:
    """All builds for an architecture that have a reference."""
    for build in LAUNCHES.builds((arch,)):
        yield fixture(build.name, arch)


def samples(*rules: str) -> Iterator[Subject]:
    """The samples of some rules (all without one) that bring a launch, and those of rules that are
    judged without one under made-up launches."""
    for rule in default_registry().rules.values():
        for sample in (*rule.bad, *rule.good) if not rules or rule.id in rules else ():
            name, text = f"{rule.id} {sample.title}", module_text(sample)
            launches = list(launches_of(sample))
            if not launches and rule.id in MADE_UP:
                launches = made_up(text)
            if launches:
                yield of_text(name, text, launches, metadata_of(sample))


def made_up(text: str, count: int = 6) -> list[Launch]:
    """Launches of a kernel, of a few CTAs of several sizes, with numbers around them."""
    (kernel,) = parse(text, "").kernels()
    random = np.random.default_rng(1)
    out = []
    for _ in range(count):
        arguments: dict[str, Argument] = {}
        for number, variable in enumerate(kernel.params):
            if variable.type.endswith("64"):
                tensor = Tensor("int32", (4096,), (1,), number, 1 << 14, values=(0, 3))
                arguments[variable.name] = tensor
            else:
                arguments[variable.name] = Scalar("", int(random.integers(0, 200)))
        threads = int(random.choice([32, 64, 96, 128]))
        block = (0, 0, 0) if kernel.directives.get("reqntid") else (threads, 1, 1)
        out.append(Launch((int(random.integers(1, 4)), 1, 1), block, arguments))
    return out


def twins(capability: int = 80) -> Iterator[Subject]:
    """The twins that are right for some launches and wrong for others, with these launches. Needs
    Triton."""
    builds = _module(FIXTURES / "twin_builds.py")
    cases = _module(TESTS / "launch" / "launch_twins.py")
    builds.prepare(tempfile.mkdtemp(prefix="twins"))
    for twin in builds.twins():
        own = [case for case in cases.CASES if case.kernel == twin.kernel]
        if not own or twin.since > capability:
            continue
        names = getattr(builds.load(twin.path), twin.kernel).arg_names
        for number, build in enumerate(twin.builds):
            launches = [
                cases.launch(list(names), twin.types, build, case.given(build)) for case in own
            ]
            launches = [launch._replace(shared=_SHARED) for launch in launches]
            text = builds.compiled(twin, build, capability)
            yield of_text(f"{twin.kernel} {number}", text, launches, None)


def of_text(
    name: str, text: str, launches: list[Launch], metadata: KernelMetadata | None
) -> Subject:
    """The first kernel of a text."""

    def emulator() -> Emulator:
        module = parse(text, f"{name}.ptx")
        return Emulator(module, module.kernels()[0])

    return Subject(name, emulator, metadata, launches)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def disproved(subjects: Iterable[Subject], changes: int, criteria: Sequence[Criterion]) -> bool:
    """True if a run disproves a proof about one of some kernels; the first will do."""
    return any(
        found.verdict == "proved"
        for subject in subjects
        for found in judged(subject, changes, criteria=criteria).wrong
    )


PARTS: dict[str, tuple[Callable[[], Iterator[Subject]], int]] = {
    "fixtures, sm_80": (lambda: fixtures("sm_80"), 10),
    "fixtures, sm_90": (lambda: fixtures("sm_90"), 10),
    "twins": (twins, 4),
    "samples": (samples, 12),
}
"""Kernels, and how often each launch is changed, in the whole run."""
