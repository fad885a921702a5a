"""The gate from pytest: a fixture for tests, and spec files that are collected as tests.

    def test_softmax(ptxlint_gate):
        ptxlint_gate("specs/softmax.py:softmax")     # or an Operator of this test's module

    [tool.pytest.ini_options]
    ptxlint_specs = ["specs/*.py"]                   # each of their operators is a test

`--ptxlint-runner` chooses where kernels run. Nothing of ptxlint is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ptxlint.dynamic.campaign.campaign import Campaign, Task
    from ptxlint.dynamic.campaign.verdict import Verdict

_CAMPAIGN: Final = pytest.StashKey["Campaign"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option and the setting."""
    group = parser.getgroup("ptxlint")
    group.addoption(
        "--ptxlint-runner",
        choices=("auto", "emulator", "cuda"),
        default="auto",
        help="where ptxlint runs kernels; auto is the GPU if there is one",
    )
    group.addoption("--ptxlint-strict", action="store_true", help="undecided operators fail, too")
    parser.addini(
        "ptxlint_specs",
        "files (globs, relative to the root) whose operators are put to the test",
        type="args",
        default=[],
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A spec file that the setting names."""
    globs = parent.config.getini("ptxlint_specs")
    try:
        relative = file_path.relative_to(parent.config.rootpath).as_posix()
    except ValueError:
        return None
    if file_path.suffix == ".py" and any(fnmatch(relative, glob) for glob in globs):
        return SpecFile.from_parent(parent, path=file_path)
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Lets the processes go."""
    campaign = config.stash.get(_CAMPAIGN, None)
    if campaign is not None:
        campaign.close()


@pytest.fixture
def ptxlint_gate(request: pytest.FixtureRequest) -> Callable[[Any], Verdict]:
    """Puts an operator to the test, and fails the test that asks where it does not pass.

    Takes a spec as the command line does, or an `Operator` that is a variable of the test's module.
    Returns the verdict.
    """

    def gate(spec: Any) -> Verdict:
        word = spec if isinstance(spec, str | Path) else _place(request, spec)
        campaign = _campaign(request.config)
        tasks = campaign.tasks([str(word)])
        verdicts = campaign.run(tasks)
        _judge(request.config, verdicts)
        return verdicts[0]

    return gate


class SpecFile(pytest.File):
    """A file of operators."""

    def collect(self) -> Iterable[pytest.Item]:
        """One item an operator; the file is executed in a child process."""
        for task in _campaign(self.config).tasks([str(self.path)]):
            yield SpecItem.from_parent(self, name=task.name or "spec", task=task)


class SpecItem(pytest.Item):
    """An operator."""

    def __init__(self, *, task: Task, **named: Any) -> None:
        super().__init__(**named)
        self._task = task

    def runtest(self) -> None:
        """The gate."""
        _judge(self.config, [_campaign(self.config).decide(self._task)])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report of the gate instead of a traceback."""
        if isinstance(excinfo.value, pytest.fail.Exception):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands."""
        return self.path, None, f"gate: {self.name}"


def _campaign(config: pytest.Config) -> Campaign:
    """The campaign of this session."""
    from ptxlint.dynamic.campaign.campaign import Campaign, Settings
    from ptxlint.dynamic.campaign.gate import Options
    from ptxlint.dynamic.campaign.machine import gpus

    if _CAMPAIGN not in config.stash:
        word = config.getoption("--ptxlint-runner")
        found = () if word == "emulator" else gpus()
        if word == "cuda" and not found:
            raise pytest.UsageError("--ptxlint-runner cuda: no CUDA device was found")
        runner = "cuda" if found else "emulator"
        config.stash[_CAMPAIGN] = Campaign(Settings(Options(runner), gpus=found))
    return config.stash[_CAMPAIGN]


def _judge(config: pytest.Config, verdicts: list[Verdict]) -> None:
    """Fails or skips the test that runs."""
    from ptxlint.dynamic.campaign.reports.text import render_text
    from ptxlint.dynamic.campaign.verdict import exit_status

    if exit_status(verdicts, strict=config.getoption("--ptxlint-strict")):
        pytest.fail(render_text(verdicts), pytrace=False)
    left = [verdict for verdict in verdicts if verdict.verdict == "undecided"]
    if left:
        pytest.skip(f"{left[0].name} is undecided: {left[0].reason}")


def _place(request: pytest.FixtureRequest, operator: Any) -> str:
    """Where an operator stands, as the command line says it."""
    names = list(_names(request.module, operator))
    if not names:
        raise pytest.UsageError(
            "ptxlint_gate takes a spec's path, or an Operator that is a variable of the test's "
            "module: it is loaded again in a child process"
        )
    return f"{request.module.__file__}:{operator.name or names[0]}"


def _names(module: Any, operator: Any) -> Iterator[str]:
    return (name for name, value in vars(module).items() if value is operator)
