"""The switch that rewrites the expected output of the text cases."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-cases`: write what the analyses say now into the case files, then look at it."""
    parser.addoption(
        "--update-cases",
        action="store_true",
        default=False,
        help="rewrite the [out] parts of tests/*/cases/*.test",
    )
