"""From what the user named to PTX texts: files, directories, Triton caches, standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ptxlint.facts import KernelMetadata
from ptxlint.frontends.triton_cache import GROUP_PREFIX

if TYPE_CHECKING:
    from ptxlint.launches import Launch

STDIN = "<stdin>"
_HERE = os.curdir + os.sep
_MANIFEST = "manifest.json"
_PROBE = 4096
_GARBAGE_SHARE = 0.05
"""Share of control bytes in the first bytes above which a file is no text."""
_MAGIC = (
    (b"\x7fELF", "an ELF file (a cubin or an object)", "give the .ptx it was assembled from"),
    (b"\x50\xed\x55\xba", "a CUDA fat binary", "extract its PTX: cuobjdump -ptx FILE"),
    (b"BC\xc0\xde", "LLVM bitcode", "compile it to PTX first"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8 or ASCII"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8 or ASCII"),
    (b"\x1f\x8b", "a gzip file", "unpack it first"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
)


class Input(NamedTuple):
    """One PTX text to check. `text` is None until it is read from `path`; `metadata` is None
    when it is to be looked for beside the file. `launches` are those that came with it."""

    path: str
    text: str | None = None
    metadata: KernelMetadata | None = None
    launches: tuple[Launch, ...] = ()


class InputFault(NamedTuple):
    """Something asked for that cannot be read: where, what is wrong, what to do. A note says that
    it was never there."""

    path: str
    message: str
    hint: str = ""
    is_note: bool = False


Found: TypeAlias = Input | InputFault


def discover(paths: Iterable[str | Input]) -> list[Found]:
    """All inputs that these paths stand for, each once, in a fixed order.

    A directory stands for every `*.ptx` below it, a captured bundle for the kernels in its manifest
    with their launches; `-` for standard input; an `Input` for itself.
    """
    found: list[Found] = []
    seen: set[str] = set()
    for path in paths:
        if isinstance(path, Input):
            found.append(path)
            continue
        for item in _expand(path):
            key = item.path if isinstance(item, InputFault) else os.path.abspath(item.path)
            if key not in seen:
                seen.add(key)
                found.append(item)
    return found


def _expand(path: str) -> Iterator[Found]:
    if path == "-":
        yield _read_stdin()
    elif not path or "\0" in path:
        yield InputFault(path.replace("\0", "\\0"), "this is no path")
    elif os.path.isdir(path):
        items = list(_walk(path))
        # A fault with advice is one of a bundle, which says more.
        if not any(isinstance(item, Input) or item.hint for item in items):
            yield InputFault(path, "no PTX in this directory", "expected files named *.ptx")
        yield from items
    elif not os.path.lexists(path):
        yield InputFault(path, "no such file or directory")
    else:
        yield Input(path)


def _walk(top: str) -> Iterator[Found]:
    """PTX files below a directory, sorted; links to directories are not followed."""
    faults: list[OSError] = []
    for directory, subdirectories, names in os.walk(top, onerror=faults.append):
        subdirectories.sort()
        if _MANIFEST in names:
            from ptxlint.frontends.bundle import is_bundle, read_bundle

            if is_bundle(directory):
                subdirectories.clear()
                yield from read_bundle(directory)
                continue
            if directory == top:
                message = "no bundle of ptxlint's, so that no launches are taken from it"
                yield InputFault(os.path.join(directory, _MANIFEST), message, is_note=True)
        for name in sorted(names):
            if name.lower().endswith(".ptx") and not name.startswith(GROUP_PREFIX):
                path = os.path.join(directory, name).removeprefix(_HERE)
                # A pipe or a device in a tree would block; a broken link is reported on reading.
                if os.path.isfile(path) or not os.path.exists(path):
                    yield Input(path)
    for fault in faults:
        yield InputFault(str(fault.filename), f"cannot list: {fault.strerror}")


def _read_stdin() -> Found:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        return InputFault(STDIN, "standard input is closed")
    try:
        data = stream.read()
    except OSError as error:
        return InputFault(STDIN, f"cannot read: {error.strerror or error}")
    text = decode(data, STDIN)
    return text if isinstance(text, InputFault) else Input(STDIN, text)


def read(item: Input) -> str | InputFault:
    """The text of an input."""
    if item.text is not None:
        return item.text if item.text.strip() else _empty(item.path)
    try:
        with open(item.path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        return InputFault(item.path, f"cannot read: {error.strerror or error}")
    return decode(data, item.path)


def _empty(path: str) -> InputFault:
    return InputFault(path, "the file is empty", "a PTX file starts with .version and .target")


def decode(data: bytes, path: str) -> str | InputFault:
    """Bytes of a file as text, or why they cannot be PTX.

    PTX is ASCII, but comments in the wild hold UTF-8 and Latin-1: both are let through and the
    parser reports what stands outside comments.
    """
    if not data.strip():
        return _empty(path)
    for magic, what, hint in _MAGIC:
        if data.startswith(magic):
            return InputFault(path, f"this is {what}, not PTX text", hint)
    probe = data[:_PROBE]
    odd = len(probe.translate(None, _TEXT_BYTES))
    if odd > max(1, int(len(probe) * _GARBAGE_SHARE)) and not _text_then_nul(probe):
        at = next(i for i, byte in enumerate(probe) if byte not in _TEXT_BYTES)
        message = f"this is binary data, not PTX text (byte 0x{probe[at]:02x} at offset {at})"
        return InputFault(path, message)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


_TEXT_BYTES = bytes([9, 10, 11, 12, 13, 26, *range(32, 127), *range(128, 256)])


def _text_then_nul(probe: bytes) -> bool:
    """True for text padded with NUL bytes at its end, as cut out of a binary."""
    stripped = probe.rstrip(b"\0")
    return bool(stripped) and not stripped.translate(None, _TEXT_BYTES)
