"""A server for children that have torch and Triton: to start one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ptxlint.dynamic.runners.supervisor import ForkServer


@pytest.fixture(scope="session")
def triton_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()
