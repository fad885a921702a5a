"""The pages: links lead somewhere, rules that are named exist, commands that are shown work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

from ptxlint.cli.commands import COMMANDS
from ptxlint.engine.registry import Registry, default_registry
from ptxlint.engine.samples import mismatches
from ptxlint.rulekit import CATEGORIES, FAMILIES, Hit, Rule, Verdict

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "fixtures").glob("*.md"),
        *(ROOT / "benchmarks").rglob("*.md"),
    ]
)
IDS = [page.relative_to(ROOT).as_posix() for page in PAGES]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)|^\[[^\]\n]+\]:\s+(\S+)$", re.MULTILINE)
RULE_ID = re.compile(r"\b(?:RES1|MSK2|BND3|NUM4|SYN5|HAZ6|PRF7|SUP0)\d\d\b")
SECONDS = re.compile(r"\d+\.\d+ s\)")


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code of one language."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [code for name, code in found if name == language]


def anchors(page: Path) -> set[str]:
    """The fragments that a page's headings can be reached by."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for pair in LINK.findall(prose(page)):
        link = pair[0] or pair[1]
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = link.partition("#")
        target = (page.parent / unquote(name)).resolve() if name else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / pair[0]).resolve() for pair in LINK.findall(prose(index))}
    assert [
        page.name for page in (ROOT / "docs").glob("*.md") if page not in {index, *listed}
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_rules_that_are_named_exist(page: Path) -> None:
    known = set(default_registry().rules) | {"SUP001", "SUP002"}
    # A page may teach with a rule of its own.
    known |= set(re.findall(r'^    id = "(\w+)"', "\n".join(blocks(page, "python")), re.MULTILINE))
    named = set(RULE_ID.findall(page.read_text(encoding="utf-8")))
    assert named - known == set()


class Shown(NamedTuple):
    """A command of a `console` block with the output that is printed under it."""

    page: Path
    command: str
    output: str


def shown() -> Iterator[Shown]:
    """All commands of all pages; a line without a prompt belongs to the command above it."""
    for page in PAGES:
        for block in blocks(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                yield Shown(page, line.partition("  #")[0].strip(), output)


SHOWN = list(shown())
TAUGHT = re.compile(r"\bPRF790\b")
"""The rule that CONTRIBUTING.md builds: commands on it work once its file is there."""


def of_program(name: str) -> list[object]:
    """The shown commands of one program, as parameters."""
    return [
        pytest.param(s, id=f"{s.page.name}: {s.command}")
        for s in SHOWN
        if shlex.split(s.command)[0] == name and not TAUGHT.search(s.command)
    ]


@pytest.mark.parametrize("shown", of_program("ptxlint"))
def test_ptxlint_commands_print_what_is_shown(shown: Shown, pytestconfig: pytest.Config) -> None:
    words = shlex.split(shown.command)
    # A cache in the reader's home is not there in a test.
    paths = [word for word in words if word.startswith("~")]
    if paths:
        assert words[1] in COMMANDS
        return
    done = subprocess.run(
        [sys.executable, "-m", "ptxlint", *words[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode in (0, 1), done.stdout
    if shown.output and SECONDS.sub("", done.stdout) != SECONDS.sub("", shown.output):
        if pytestconfig.getoption("--update-cases"):
            text = shown.page.read_text(encoding="utf-8")
            shown.page.write_text(text.replace(shown.output, done.stdout), encoding="utf-8")
        assert done.stdout == shown.output


@pytest.mark.parametrize("shown", of_program("make"))
def test_make_targets_exist(shown: Shown) -> None:
    words = shlex.split(shown.command)
    done = subprocess.run(
        ["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shown", of_program("pytest"))
def test_pytest_options_and_paths_exist(shown: Shown) -> None:
    command = [sys.executable, "-m", "pytest", "--help"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for word in shlex.split(shown.command)[1:]:
        if word.startswith("--"):
            assert word in known
        elif word.startswith("tests"):
            assert (ROOT / word).exists()


def test_nothing_else_is_shown_as_a_command() -> None:
    programs = {shlex.split(s.command)[0] for s in SHOWN}
    assert programs <= {"ptxlint", "make", "pytest", "pip", "git", "cd"}


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> type[Rule]:
    """The rule that CONTRIBUTING.md builds, as if its file lay in rules/."""
    (code,) = blocks(ROOT / "CONTRIBUTING.md", "python")
    names: dict[str, object] = {"__name__": "ptxlint.rules.prf790_system_fence_in_loop"}
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    rule = names["SystemFenceInLoop"]
    assert isinstance(rule, type)
    assert issubclass(rule, Rule)
    registry = Registry()
    registry.add(rule)
    monkeypatch.setattr("ptxlint.engine.run.default_registry", lambda: registry)
    return rule


def test_the_rule_that_is_taught_passes_its_samples(taught: type[Rule]) -> None:
    for sample in (*taught.bad, *taught.good):
        assert mismatches(taught, sample) == [], sample.title


def test_the_rule_that_is_taught_is_clean(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "CONTRIBUTING.md", "python")
    file = tmp_path / "prf790_system_fence_in_loop.py"
    file.write_text(code, encoding="utf-8")
    config = ["--config", str(ROOT / "pyproject.toml")]
    for command in (["check", "--no-cache", *config], ["format", "--check", *config]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_contributing_lists_every_category() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [c for c in CATEGORIES if f"`{c}`" not in text] == []


def test_contributing_lists_every_family_with_a_rule_of_it() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| (\w{6}|none yet) \|$", text, re.MULTILINE))
    assert rows.keys() == FAMILIES
    rules = default_registry().rules
    taken = {rule.family for rule in rules.values()}
    for family, example in rows.items():
        if example == "none yet":
            assert family not in taken
        else:
            assert rules[example].family == family


@pytest.mark.parametrize("kind", [Hit, Verdict])
def test_contributing_lists_every_field(kind: type[Hit] | type[Verdict]) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, table = text.partition(f"| `{kind.__name__}`: ")
    table, _, _ = table.partition("\n\n")
    assert tuple(re.findall(r"^\| `(\w+)", table, re.MULTILINE)) == kind._fields


def test_demo_runs() -> None:
    folder = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", str(ROOT / "docs" / "demo.sh")],
        env={"PATH": f"{folder}:/usr/bin:/bin", "HOME": "/dev/null"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fixtures/kernels/softmax_buggy.py:15:9: error[MSK201]" in done.stdout
    assert "fixtures/kernels/rmsnorm.py:18:21: warning[NUM407]" in done.stdout
    assert "tl.sqrt(mean_square + eps)" in done.stdout
    assert "on sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a" in done.stdout
    assert [f"[exit status {n}]" in done.stdout for n in (0, 1, 2)] == [True] * 3
