"""A process that has loaded torch and Triton once and forks a fresh child for each operator.

    python -m ptxlint.dynamic.runners.fork_server SOCKET RUNNER

To import both takes seconds, to fork takes a moment. The server itself never runs what people
wrote, starts no thread, and touches no GPU. It talks over the socket of that number: `fork` with
three pipes, `poll` for how a child ended; when the other side is gone, it kills its children and
leaves. For the runner `numpy` neither torch nor Triton is loaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, Final

from ..operators.spec import NUMPY
from .child import serve
from .preload import preload
from .requests import Plan

_PDEATHSIG: Final = 1
"""PR_SET_PDEATHSIG (prctl(2)): the signal that a process gets when its parent ends."""
_MOST: Final = 1 << 16
"""Bytes of a message."""
PIPES: Final = 3
"""With a request to fork: where requests come from, answers and output go."""


def main() -> int:
    """Serve until the other side goes."""
    server = socket.socket(fileno=int(sys.argv[1]))
    if sys.argv[2] != NUMPY:
        preload()
    children: set[int] = set()
    try:
        _reply(server, {"ready": True})
        while True:
            data, pipes, _, _ = socket.recv_fds(server, _MOST, PIPES)
            if not data:
                return 0
            message = json.loads(data)
            if "fork" in message:
                number = _fork(server, message["fork"], pipes)
                children.add(number)
                _reply(server, {"pid": number})
            else:
                ended = _poll(message["poll"])
                if ended is not None:
                    children.discard(message["poll"])
                _reply(server, {"ended": ended})
    except (OSError, KeyboardInterrupt):
        return 0
    finally:
        for child in children:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)


def _fork(server: socket.socket, plan: dict[str, Any], pipes: list[int]) -> int:
    number = os.fork()
    if number:
        for pipe in pipes:
            os.close(pipe)
        return number
    status = 1
    try:
        # A group of its own: what it starts is killed with it.
        os.setsid()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        server.close()
        requests, answers, output = pipes
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.close(nothing)
        os.close(output)
        serve(Plan(**plan), requests, answers)
        status = 0
    finally:
        # Whatever the operator registered to run at exit must not run in a copy of this process.
        os._exit(status)


def _poll(number: int) -> int | None:
    """How a child ended, as `waitpid` has it; None if it has not."""
    found, status = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _reply(server: socket.socket, message: dict[str, Any]) -> None:
    server.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    # What torch does when Python ends takes seconds, and there is nothing to clean up.
    os._exit(main())
