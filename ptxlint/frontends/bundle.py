"""Captured bundles: `DIR/manifest.json` with kernels and their launches (docs/bundle.md)."""

from __future__ import annotations

import os
import re
from typing import Any, Final

from ptxlint.frontends.discovery import Found, Input, InputFault
from ptxlint.frontends.launch_file import LaunchFileError, load_json, located, read_text
from ptxlint.frontends.launch_layout import read_launch
from ptxlint.frontends.launch_nodes import LayoutError, Node, needed
from ptxlint.launches import Launch

MANIFEST: Final = "manifest.json"
VERSION: Final = 1
_ADVICE: Final = "capture it again, or check its .ptx files one by one, which uses no launches"
_TOOL: Final = re.compile(rb'"tool"\s*:\s*"ptxlint')
_SHOWN: Final = 3
_ENDS: Final = {"exited": "ended early", "timeout": "ran out of time"}
"""How a run ended, in words; the others are words."""
_FILES: Final = ("cubin", "ttir", "metadata")
"""Files of a kernel besides its PTX. They may have been deleted, but must not lie elsewhere."""


def is_bundle(directory: str) -> bool:
    """True if a directory has a manifest that ptxlint wrote, be it one that can be used or not."""
    path = os.path.join(directory, MANIFEST)
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            head = stream.read(1 << 12)
    except OSError:
        return True
    # Many other tools call a file so.
    return _TOOL.search(head) is not None


def read_bundle(directory: str) -> list[Found]:
    """The kernels of a bundle, each with its launches; what cannot be used is a fault."""
    path = os.path.join(directory, MANIFEST)
    try:
        text = read_text(path)
        data = load_json(text, path)
    except LaunchFileError as error:
        return [InputFault(path, str(error).removeprefix(f"{path}: "), _ADVICE)]
    try:
        return _kernels(Node(data), directory)
    except LayoutError as error:
        message = located(error, text, path).removeprefix(f"{path}: ")
        return [InputFault(path, message.removeprefix(f"{path}:"), _ADVICE)]


def _kernels(root: Node, directory: str) -> list[Found]:
    members = root.mapping("a bundle's manifest")
    needed(root, members, "version", f"this ptxlint reads {VERSION}").version(VERSION)
    kernels = needed(root, members, "kernels", "what was captured").items("kernels")
    recordings = _file(members["recordings"], directory) if "recordings" in members else ""
    found: dict[str, Input] = {}
    faults: list[Found] = []
    for node in kernels:
        kernel = node.mapping("a kernel")
        path = _file(needed(node, kernel, "ptx", "the file of its PTX"), directory)
        for key in _FILES:
            if key in kernel and kernel[key].data is not None:
                _file(kernel[key], directory)
        launches = _launches(node, kernel, recordings)
        if not os.path.isfile(path):
            faults.append(InputFault(path, f"the bundle names this file, and it is not there "
                                     f"(kernel {kernel['name'].text()})", _ADVICE))  # fmt: skip
        elif path in found:
            found[path] = found[path]._replace(launches=(*found[path].launches, *launches))
        else:
            found[path] = Input(path, launches=launches)
    left_out = _left_out(members)
    if not found and not faults:
        message = "no kernel was captured in this bundle"
        hint = f"the capture says: {left_out[0]}" if left_out else _ADVICE
        faults.append(InputFault(directory, message, hint))
    elif left_out:
        shown = "; ".join(left_out[:_SHOWN])
        more = f"; and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""
        path = os.path.join(directory, MANIFEST)
        message = f"the capture left something out: {shown}{more}"
        faults.append(InputFault(path, message, "what is not in the bundle is not checked", True))
    return [*found.values(), *faults]


def _left_out(members: dict[str, Node]) -> list[str]:
    """What the capture did not get: runs that did not end well, and its problems."""
    runs = [
        f"the run for {run.get('arch')} {_ENDS.get(run['status'], run['status'])}: "
        f"{run.get('message')}"
        for run in _entries(members, "runs")
        if run.get("status") not in (None, "complete")
    ]
    problems = [
        f"{problem.get('what')} ({problem.get('arch')}): {problem.get('reason')}"
        for problem in _entries(members, "problems")
    ]
    return runs + problems


def _entries(members: dict[str, Node], key: str) -> list[dict[str, Any]]:
    items = members[key].items(key) if key in members else []
    return [{k: node.data for k, node in item.mapping("an entry").items()} for item in items]


def _file(node: Node, directory: str) -> str:
    """A file of the bundle; it must lie in it."""
    relative = node.text()
    parts = relative.replace("\\", "/").split("/")
    if os.path.isabs(relative) or ".." in parts or "\0" in relative or not relative:
        raise node.fault(f"{relative!r} does not lie in the bundle")
    return os.path.normpath(os.path.join(directory, relative))


def _launches(node: Node, kernel: dict[str, Node], recordings: str) -> tuple[Launch, ...]:
    """The launches of a kernel, whose arguments must be those of its signature."""
    name = needed(node, kernel, "name", "the kernel's name").text()
    signature = needed(node, kernel, "signature", "Triton's type of each parameter")
    types = signature.mapping("a signature")
    launches: list[Launch] = []
    for item in needed(node, kernel, "launches", "a list").items("launches"):
        launch = read_launch(item, "", recordings)
        members = item.mapping("a launch")
        _compare(members["arguments"], types)
        launches.append(launch._replace(kernel=name, is_ordered=True))
    return tuple(launches)


def _compare(arguments: Node, types: dict[str, Node]) -> None:
    """Arguments and signature name the same parameters, in the same order."""
    given_names, wanted = list(arguments.mapping("the arguments")), list(types)
    if given_names == wanted:
        return
    for name in wanted:
        if name not in given_names:
            raise arguments.fault(f"no argument for `{name}`, which the signature has")
    for name in given_names:
        if name not in wanted:
            raise arguments.fault(f"`{name}` is not in the kernel's signature")
    raise arguments.fault("the arguments are in another order than the signature")
