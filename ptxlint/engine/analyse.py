"""The check of one file: text to module, module to facts, facts to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os.path import isabs, isfile, relpath, splitext
from time import process_time
from typing import TYPE_CHECKING, Any

from ptxlint.diagnostics import SEVERITY_ORDER, Finding, Place, Related
from ptxlint.engine.collector import collector_paused, tidy
from ptxlint.engine.crash import describe_crash
from ptxlint.engine.fingerprint import Fingerprints, by_position
from ptxlint.engine.options import Options
from ptxlint.engine.places import Places
from ptxlint.engine.pseudo import INPUT, INTERNAL, PARSE, PseudoRule
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.registry import Registry
from ptxlint.engine.result import FileResult, KernelSummary, summarise
from ptxlint.engine.selection import enabled_rules
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.engine.suppression import (
    PythonSuppressions,
    Suppression,
    Suppressions,
    bearing_on,
)
from ptxlint.facts import NO_WORDS, Facts, KernelMetadata
from ptxlint.frontends.discovery import STDIN, Code, Found, Input, InputFault, read, read_code
from ptxlint.frontends.stems import has_beside
from ptxlint.frontends.target_filter import peek_target, wanted
from ptxlint.frontends.triton_cache import MetadataError, load_metadata
from ptxlint.obligations import (
    SEMANTICS,
    SEMANTICS_OPEN,
    Evidence,
    Generalisation,
    Obligation,
)
from ptxlint.rulekit import Hit, Rule, Verdict

if TYPE_CHECKING:
    from ptxlint.arch import Arch
    from ptxlint.engine.under_launch import FileLaunches
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr
    from ptxlint.ir.module import Module
    from ptxlint.launch.binding import Bound
    from ptxlint.resources import Resources
    from ptxlint.source import Problem

_TOO_MANY_FAULTS = 200
"""The parser and the verifier both give up here, so that more may follow unseen."""
_LONGEST_MESSAGE = 1_000
"""Characters; a message may quote a name, and a broken file may hold one of any length."""
_STATUSES = frozenset({"proved", "refuted", "open"})


class Checker:
    """Checks files one by one under the same options; keeps nothing but read Python files."""

    def __init__(self, options: Options, registry: Registry) -> None:
        self.options = options
        self.registry = registry
        self.sources = PythonSources(tuple(dict.fromkeys(("", options.root))))
        self.enabled = enabled_rules(registry, options.select, options.ignore)
        self.rules = [r for i, r in registry.rules.items() if i in self.enabled]
        self.path_ignores = [
            (glob, _ignored(registry, words)) for glob, words in options.per_path_ignores
        ]
        self.reader = PythonReader(self.sources)
        self.python_suppressions = PythonSuppressions(self.sources, lambda: registry)

    def check(self, item: Found) -> FileResult:
        """Check one input; never raises for what is in it."""
        if isinstance(item, InputFault):
            return FileResult(item.path, (input_finding(item),))
        code = read_code(item)
        if isinstance(code, InputFault):
            return FileResult(item.path, (input_finding(code),))
        target = peek_target(code.text) if self.options.arch else ""
        if target and not wanted(target, self.options.arch):
            return FileResult(item.path, skipped=target)
        with collector_paused():
            return FileCheck(self, item, code).run()

    def ignored_here(self, rule: str, place: Place) -> bool:
        """True if a per-path ignore covers this rule at this place."""
        if not self.path_ignores:
            return False
        paths = [place.path, *([place.source.path] if place.source else [])]
        from fnmatch import fnmatchcase

        names = [self._relative(path) for path in paths]
        return any(
            rule in rules and any(fnmatchcase(name, glob) for name in names)
            for glob, rules in self.path_ignores
        )

    def _relative(self, path: str) -> str:
        if not self.options.root and not isabs(path):
            return path
        return relpath(path, self.options.root or ".").replace("\\", "/")


def _ignored(registry: Registry, words: tuple[str, ...]) -> frozenset[str]:
    """The rules that an `ignore` list turns off."""
    everything = enabled_rules(registry, ("ALL", *registry.rules))
    return everything - enabled_rules(registry, ("ALL",), words)


class FileCheck:
    """The state of the check of one file."""

    def __init__(self, checker: Checker, item: Input, code: Code) -> None:
        self.checker = checker
        self.path = item.path
        self.is_machine = code.is_machine
        self.cubin = code.cubin
        self.level = "sass" if code.is_machine else "ptx"
        self.given_ptx = item.ptx
        self.source: dict[str, Facts] | None = None
        """The kernels that machine code was assembled from, once somebody has looked."""
        self.given_metadata = item.metadata
        self.own_launches = item.launches
        self.met: frozenset[int] = frozenset()
        self.under: dict[tuple[str, str, int, str], dict[str, Any]] = {}
        """The launch under which something was said first, by what was said where."""
        self.text = code.text
        self.findings: list[Finding] = []
        self.obligations: list[Obligation] = []
        self.kernels: list[KernelSummary] = []
        self.seconds: dict[str, float] = {}
        self.fingerprints = Fingerprints()
        self.suppressions = Suppressions([])
        self.covered: set[Suppression] = set()
        self.crashes: dict[tuple[str, str], int] = {}
        self.suppressed = 0
        self.arch = ""

    def run(self) -> FileResult:
        """Parse, verify, run all rules on all functions."""
        module = self._parse()
        if module is not None:
            self.arch = module.arch
            if not wanted(module.arch, self.checker.options.arch):
                return FileResult(self.path, skipped=module.arch)
            self._check_module(module)
        return FileResult(
            self.path,
            tuple(self.findings),
            tuple(self.obligations),
            tuple(self.kernels),
            tuple(self.suppressions.comments),
            frozenset(self.suppressions.used),
            frozenset(self.covered),
            self.suppressed,
            self.text.count("\n") + 1,
            self.seconds if self.checker.options.statistics else {},
            met=self.met,
            is_machine=self.is_machine,
        )

    def _parse(self) -> Module | None:
        text = self.text
        nul = text.find("\0")
        if nul >= 0:
            self._nul_bytes(nul)
            text = text.replace("\0", " ")
        start = process_time()
        try:
            if self.is_machine:
                from ptxlint.frontends.sass import parse as parse_listing

                return parse_listing(text, self.path)
            from ptxlint.frontends.ptx import parse

            return parse(text, self.path, parser=self.checker.options.parser)
        except Exception as error:
            self._crash(error, "the parser", Place(self.path, 1, 1), "")
            return None
        finally:
            self.seconds["parse"] = process_time() - start

    def _nul_bytes(self, at: int) -> None:
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        count = self.text.count("\0")
        self._add_pseudo(
            PARSE,
            f"{count} NUL byte{'s' if count > 1 else ''} in the text; PTX is plain ASCII",
            Place(self.path, line, column),
            help="remove the bytes; a string cut out of a binary often carries them at its end",
        )

    def _check_module(self, module: Module) -> None:
        checker = self.checker
        places = Places(module, checker.sources)
        self.suppressions = bearing_on(module, checker.python_suppressions)
        known = self._problems(module, places)
        if self.is_machine and module.functions and not module.files:
            self._no_lines()
        arch = find_arch(module.arch)
        metadata = self._metadata()
        kernels = module.kernels()
        launches = self._launches(kernels)
        exact = self._machine_resources(module) if self.is_machine else self._resources(module)
        for function in module.functions:
            if function.is_declaration:
                continue
            beside = metadata if _belongs(metadata, function, kernels) else None
            if function.is_kernel:
                line = module.source.position(function.offset).line
                self.kernels.append(summarise(function, module.arch, self.path, line, beside))
                self._unreferenced(function, places)
                if checker.options.measures and known:
                    self._measure(module, function, beside, exact.get(function.name), places)
            words = NO_WORDS if self.is_machine else KernelWords(module, function, checker.reader)
            effort = self.checker.options.budget
            facts = Facts(module, function, arch, beside, words, effort)
            facts.exact = exact.get(function.name)
            if facts.exact is not None and function.is_kernel:
                self.kernels[-1] = self.kernels[-1]._replace(resources=facts.exact.as_data())
            if facts.exact is not None and not self.is_machine:
                self._know_machine_code(module, facts)
            if launches is not None and function.is_kernel:
                self._bind(launches, facts, places)
            if self.is_machine and function.is_kernel:
                self._know_source(facts)
            if known:
                self._check_function(function, facts, places)
                if function.is_kernel:
                    spent = tuple(name for name, budget in facts.budgets.items() if budget.spent)
                    self.kernels[-1] = self.kernels[-1]._replace(spent=spent)
                facts.forget()
                tidy()
        self.covered = self._covered(module, places)

    def _no_lines(self) -> None:
        """Machine code that was assembled without lines of its source."""
        message = "this machine code names no lines of a source: places are those of the listing"
        help = (
            "assemble with -lineinfo; Triton does unless TRITON_DISABLE_LINE_INFO=1; of a cubin, "
            "nvdisasm prints lines with -gi, and cuobjdump -sass never does"
        )
        self._add_pseudo(INPUT, message, Place(self.path, 1, 1), help=help, severity="note")

    def _know_source(self, facts: Facts) -> None:
        """Give a kernel of machine code the PTX that it was assembled from, if that is at hand."""
        from ptxlint.structure.assembled_from import AssembledFrom

        if self.source is None:
            self.source = self._source_kernels()
        source = self.source.get(facts.function.name)
        facts.know(AssembledFrom, source)
        if source is not None:
            # What rules say of parameters is said of those in the PTX.
            facts.words = source.words

    def _source_kernels(self) -> dict[str, Facts]:
        """The kernels of the PTX beside machine code by name; none if it cannot be read."""
        text: str | InputFault | None = self.given_ptx
        if text is None:
            path = splitext(self.path)[0] + ".ptx"
            if self.path == STDIN or not isfile(path):
                return {}
            text = read(Input(path))
        if isinstance(text, InputFault):
            return {}
        from ptxlint.frontends.ptx import parse

        module = parse(text, splitext(self.path)[0] + ".ptx")
        if module.problems:
            return {}
        reader = self.checker.reader
        return {
            kernel.name: Facts(module, kernel, words=KernelWords(module, kernel, reader))
            for kernel in module.kernels()
        }

    def _know_machine_code(self, module: Module, facts: Facts) -> None:
        """Let rules ask for what a kernel was assembled into."""
        from ptxlint.structure.assembled_into import AssembledInto, MachineCode

        name = facts.function.name
        facts.know(AssembledInto, MachineCode(lambda: self._machine_facts(module).get(name)))

    def _machine_facts(self, module: Module) -> dict[str, Facts]:
        """The kernels of the cubin that was assembled, or that lies beside; none without."""
        from ptxlint.engine.baseline.entries import base
        from ptxlint.engine.resources import assembled, cubin_beside, machine_facts
        from ptxlint.frontends.toolkit import ToolError

        options = self.checker.options
        try:
            if options.exact:
                return machine_facts(assembled(module, options.ptxas).cubin)
            cubin = cubin_beside(self.path)
            found = {} if cubin is None else machine_facts(cubin)
            return {n: f for n, f in found.items() if base(f.module.arch) == base(module.arch)}
        except ToolError:
            # What the numbers are is known without; the lines are left out.
            return {}

    def _launches(self, kernels: list[Function]) -> FileLaunches | None:
        """The launches of this file; None without any."""
        shared = self.checker.options.launches
        # Machine code says too little of its parameters to put values in.
        if self.is_machine or (not self.own_launches and not shared):
            return None
        from ptxlint.engine.under_launch import FileLaunches

        found = FileLaunches(self.own_launches, shared, kernels)
        self.met = found.met
        for message in found.strays():
            self._unfit(message, Place(self.path, 1, 1), "")
        return found

    def _bind(self, launches: FileLaunches, facts: Facts, places: Places) -> None:
        name = facts.function.name
        for message in launches.bind(facts):
            self._unfit(message, places.of_function(facts.function), name)
        self.kernels[-1] = self.kernels[-1]._replace(
            launches=launches.covered.get(name, 0), left_out=launches.left_out.get(name, ())
        )

    def _unfit(self, message: str, place: Place, kernel: str) -> None:
        """A launch that cannot be used was asked for: nothing was said about it."""
        help = "correct the launch, or check the file that was launched"
        fingerprint = self.fingerprints.next(INPUT.id, kernel, message)
        finding = pseudo_finding(INPUT, message, place, "", help)
        self._add(finding._replace(kernel=kernel, arch=self.arch, fingerprint=fingerprint))

    def _measure(
        self,
        module: Module,
        function: Function,
        beside: KernelMetadata | None,
        known: Resources | None,
        places: Places,
    ) -> None:
        """Note what a baseline keeps of a kernel."""
        from ptxlint.engine.baseline.measures import measure
        from ptxlint.structure.canonical import Kernel

        try:
            measures = measure(Kernel(function, module), beside, known)
        except Exception as error:
            place = places.of_function(function)
            self._crash(error, "the measuring for the baseline", place, function.name, places)
        else:
            self.kernels[-1] = self.kernels[-1]._replace(measures=measures)

    def _problems(self, module: Module, places: Places) -> bool:
        """Findings for the faults of the text, in text order, an opcode at most once.

        False if there are so many that the module cannot be analysed.
        """
        problems = list(module.problems)
        start = process_time()
        try:
            if not self.is_machine:
                problems += self._verified(module, problems)
        except Exception as error:
            self._crash(error, "the verifier", Place(self.path, 1, 1), "")
        self.seconds["verify"] = process_time() - start
        once: set[tuple[str, str, int]] = set()
        for problem in sorted(problems, key=lambda p: p.offset):
            by_opcode = problem.code == "unknown-opcode"
            key = (problem.code, problem.message, 0 if by_opcode else problem.offset)
            if key not in once:
                once.add(key)
                self._problem(problem, places)
        if len(problems) < _TOO_MANY_FAULTS:
            return True
        message = f"{_TOO_MANY_FAULTS} faults or more: no rule was run on this module"
        self._add_pseudo(PARSE, message, Place(self.path, 1, 1), help="correct the faults first")
        return False

    def _verified(self, module: Module, problems: list[Problem]) -> list[Problem]:
        """What the verifier finds in PTX; statements that make no sense are set aside."""
        from ptxlint.ir.opaque import MALFORMED, set_aside
        from ptxlint.ir.verifier import verify

        found = verify(module)
        set_aside(module, {p.offset for p in (*problems, *found) if p.code in MALFORMED})
        return found

    def _problem(self, problem: Problem, places: Places) -> None:
        place = places.at_offset(problem.offset)
        severity = "note" if problem.note else PARSE.severity
        self._add_pseudo(PARSE, problem.message, place, help=problem.hint, severity=severity)

    def _metadata(self) -> KernelMetadata | None:
        if self.given_metadata is not None or self.path == STDIN:
            return self.given_metadata
        try:
            return load_metadata(self.path)
        except MetadataError as error:
            message = f"the metadata beside this file cannot be used: {error}"
            place = Place(self.path, 1, 1)
            help = "the kernel was checked without it; correct or remove the .json"
            self._add_pseudo(INPUT, message, place, help=help, severity="warning")
            return None

    def _resources(self, module: Module) -> dict[str, Resources]:
        """What is known for certain of the kernels' registers and spills, by name."""
        options = self.checker.options
        if not (options.exact or has_beside(self.path)):
            return {}
        from ptxlint.engine.resources import exact, resources_beside
        from ptxlint.frontends.toolkit import ToolError

        faults: list[str] = []
        found = resources_beside(self.path, module.arch, faults)
        for fault in faults:
            help = "assemble it again, or take it away: the kernels were checked without it"
            self._add_pseudo(INPUT, fault, Place(self.path, 1, 1), help=help, severity="note")
        if not options.exact:
            return found
        try:
            return exact(module, options.ptxas)
        except ToolError as error:
            help = "registers and spills are estimates; check without --exact, or mend the cause"
            self._add_pseudo(INPUT, str(error), Place(self.path, 1, 1), help=help)
            return found

    def _machine_resources(self, module: Module) -> dict[str, Resources]:
        """What the kernels of machine code take, by name."""
        from ptxlint.engine.resources import machine_resources

        return {
            kernel.name: machine_resources(Facts(module, kernel), self.cubin, self.path)
            for kernel in module.kernels()
        }

    def _check_function(self, function: Function, facts: Facts, places: Places) -> None:
        for rule in self.checker.rules:
            if self.level not in rule.levels or (rule.kernels_only and not function.is_kernel):
                continue
            start, before = process_time(), sum(facts.seconds.values())
            self._run_rule(rule, function, facts, places)
            spent = process_time() - start - (sum(facts.seconds.values()) - before)
            self._spend(f"rule {rule.id}", spent)
        for name, seconds in facts.seconds.items():
            self._spend(f"analysis {name}", seconds)

    def _spend(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def _run_rule(self, rule: type[Rule], function: Function, facts: Facts, places: Places) -> None:
        """Run one rule; a crash is a finding and leaves what it had yielded in place."""
        try:
            for said in rule().check(function, facts):
                if isinstance(said, Hit):
                    self._hit(rule, said, facts, places)
                elif isinstance(said, Verdict):
                    self._verdict(rule, said, facts, places)
                else:
                    raise TypeError(f"yielded {said!r}, which is neither a Hit nor a Verdict")
        except Exception as error:
            place = places.of_function(function)
            self._crash(error, f"rule {rule.id} {rule.name}", place, function.name, places)

    def _hit(self, rule: type[Rule], hit: Hit, facts: Facts, places: Places) -> None:
        function, translate = facts.function, facts.words.translate
        severity = hit.severity or rule.severity
        if severity not in SEVERITY_ORDER:
            raise ValueError(f"severity {severity!r} is none of {', '.join(SEVERITY_ORDER)}")
        place = places.of(hit.at) if hit.at is not None else places.of_function(function)
        launch = None
        if hit.launch is not None:
            said = f"{severity} {hit.key or hit.message}"
            launch = self._first_under(hit.launch, rule, function, hit.at, said)
            if launch is None:
                return
        key = by_position(hit.key or hit.message, function)
        fingerprint = self.fingerprints.next(rule.id, function.name, key)
        related = tuple(Related(translate(n.message), places.of(n.at)) for n in hit.related)
        self._add(
            Finding(
                rule.id,
                rule.name,
                severity,  # type: ignore[arg-type]
                rule.confidence,  # type: ignore[arg-type]
                rule.family,
                translate(hit.message),
                function.name,
                self.arch,
                place,
                related,
                translate(hit.breaks_when),
                translate(hit.help) or rule.fix,
                _in_words(hit.witness, translate),
                fingerprint,
                hit.exact,
                label=translate(hit.label),
                launch=launch,
            )
        )

    def _verdict(self, rule: type[Rule], verdict: Verdict, facts: Facts, places: Places) -> None:
        function, translate = facts.function, facts.words.translate
        evidence = tuple(verdict.evidence) if self.checker.options.evidence else ()
        for status in (verdict.status, *(part.status for part in evidence)):
            if status not in _STATUSES:
                raise ValueError(f"status {status!r} is none of {', '.join(sorted(_STATUSES))}")
        place = places.of(verdict.at) if verdict.at is not None else places.of_function(function)
        launch = None
        if verdict.launch is not None:
            launch = self._first_under(verdict.launch, rule, function, verdict.at, verdict.status)
            if launch is None:
                return
        given, reason = verdict.status, verdict.reason
        spent = facts.spent(rule.needs) if given != "refuted" else None
        if spent is not None and given == "proved":
            # What was given up may be what a proof has to look at.
            given, reason = "open", spent.reason
        elif spent is not None and spent.reason not in reason:
            reason = f"{reason}; {spent.reason}"
        self.obligations.append(
            Obligation(
                rule.family,
                function.name,
                given,  # type: ignore[arg-type]
                translate(reason),
                rule.id,
                self.arch,
                place,
                {translate(name): values for name, values in verdict.suggest.items()},
                verdict.assumes if given == verdict.status else (),
                tuple(
                    Evidence(
                        part.status,  # type: ignore[arg-type]
                        translate(part.reason),
                        places.of(part.at) if part.at is not None else None,
                        {key: translate(text) for key, text in part.details.items()},
                    )
                    for part in evidence
                ),
                launch=launch,
                generalises=tuple(
                    part._replace(
                        text=translate(part.text),
                        name=translate(part.name),
                        premises=tuple(map(translate, part.premises)),
                    )
                    for part in self._carried(verdict, given)
                ),
            )
        )

    def _carried(self, verdict: Verdict, given: str) -> Iterable[Generalisation]:
        """The other launches that a verdict is shown for, if somebody asks and it stands."""
        is_asked = self.checker.options.evidence and given == verdict.status
        return verdict.generalises if is_asked else ()

    def _first_under(
        self, bound: Bound, rule: type[Rule], function: Function, at: Instr | None, said: str
    ) -> dict[str, Any] | None:
        """A launch as data; None if the same was said under another one, which then counts it."""
        from ptxlint.engine.under_launch import launch_to_dict

        key = (rule.id, function.name, at.index if at is not None else -1, said)
        first = self.under.get(key)
        if first is not None:
            first["more"] += 1
            return None
        launch = self.under[key] = launch_to_dict(bound)
        return launch

    def _unreferenced(self, function: Function, places: Places) -> None:
        """The verdict on what only a reference can tell."""
        place = places.of_function(function)
        self.obligations.append(
            Obligation(SEMANTICS, function.name, "open", SEMANTICS_OPEN, "", self.arch, place)
        )

    def _add_pseudo(
        self, kind: PseudoRule, message: str, place: Place, *, help: str, severity: str = ""
    ) -> None:
        fingerprint = self.fingerprints.next(kind.id, "", message)
        self._add(
            pseudo_finding(kind, message, place, severity, help)._replace(
                arch=self.arch, fingerprint=fingerprint
            )
        )

    def _add(self, finding: Finding) -> None:
        if self.checker.ignored_here(finding.rule, finding.place):
            return
        if len(finding.message) > _LONGEST_MESSAGE:
            half = _LONGEST_MESSAGE // 2
            message = f"{finding.message[:half]} … {finding.message[-half:]}"
            finding = finding._replace(message=message)
        if self.suppressions.hold_back(finding.rule, finding.place):
            self.suppressed += 1
            return
        self.findings.append(finding)

    def _crash(
        self, error: Exception, who: str, place: Place, kernel: str, places: Places | None = None
    ) -> None:
        """An INTERNAL finding; a fault shared by several rules is reported once a function."""
        crash = describe_crash(error)
        known = self.crashes.get((kernel, crash.where))
        if known is not None:
            finding = self.findings[known]
            self.findings[known] = finding._replace(help=f"{finding.help}; {who} met it too")
            return
        if crash.instruction is not None and places is not None:
            place = places.of(crash.instruction)
        inside = f" in {kernel}" if kernel else ""
        message = f"{who} crashed{inside}: {crash.message}"
        fingerprint = self.fingerprints.next(INTERNAL.id, kernel, f"{who}: {crash.message}")
        self.crashes[kernel, crash.where] = len(self.findings)
        self.findings.append(
            pseudo_finding(INTERNAL, message, place, "", f"raised at {crash.where}")._replace(
                kernel=kernel, arch=self.arch, fingerprint=fingerprint
            )
        )

    def _covered(self, module: Module, places: Places) -> set[Suppression]:
        """The comments that stand on code of this module's checked functions."""
        comments = self.suppressions.comments
        out = {comment for comment in comments if not comment.python}
        python = [comment for comment in comments if comment.python]
        if python:
            lines: set[tuple[str, int]] = set()
            for function in module.functions:
                lines |= places.covered(function)
            out |= {c for c in python if any((c.path, line) in lines for line in c.lines)}
        return out


def _in_words(
    witness: dict[str, Any] | None, translate: Callable[[str], str]
) -> dict[str, Any] | None:
    """A witness whose values have the source's names."""
    if witness is None or "values" not in witness:
        return witness
    values = {translate(name): value for name, value in witness["values"].items()}
    return {**witness, "values": values}


def find_arch(name: str) -> Arch | None:
    """Limits of a target; None when it is malformed or not in the tables."""
    if not name:
        return None
    from ptxlint.arch import TargetError, find

    try:
        return find(name)
    except TargetError:
        return None


def _belongs(metadata: KernelMetadata | None, function: Function, kernels: list[Function]) -> bool:
    """True if a .json speaks of this function: by name, or as the file's only kernel."""
    if metadata is None or not function.is_kernel:
        return False
    return metadata.name == function.name or len(kernels) == 1


def pseudo_finding(
    kind: PseudoRule, message: str, place: Place, severity: str = "", help: str = ""
) -> Finding:
    """A finding of the engine itself."""
    return Finding(
        kind.id,
        kind.name,
        severity or kind.severity,  # type: ignore[arg-type]
        kind.confidence,  # type: ignore[arg-type]
        kind.family,
        message,
        "",
        "",
        place,
        help=help,
    )


def input_finding(fault: InputFault) -> Finding:
    """The finding for something that cannot be read."""
    severity = "note" if fault.is_note else ""
    finding = pseudo_finding(INPUT, fault.message, Place(fault.path, 1, 1), severity, fault.hint)
    key = Fingerprints().next(INPUT.id, fault.path, fault.message)
    return finding._replace(fingerprint=key)
