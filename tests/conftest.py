"""Options and markers of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--run-slow`: what `make test-all` adds to `make test`; `--update-cases`: accept what is."""
    parser.addoption(
        "--run-slow",
        action="store_true",
        default=False,
        help="run the tests marked slow too, and whole suites where a sample is the default",
    )
    parser.addoption(
        "--update-cases",
        action="store_true",
        default=False,
        help="rewrite the [out] parts of tests/*/cases/*.test; read the difference afterwards",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests unless they are asked for."""
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow; runs with --run-slow (make test-all)")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def run_slow(request: pytest.FixtureRequest) -> bool:
    """True if whole suites are asked for, False if a fixed sample is enough."""
    return bool(request.config.getoption("--run-slow"))
