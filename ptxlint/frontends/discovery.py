"""From what the user named to texts to check: files, directories, Triton caches, standard input.

A text is PTX, or a listing of machine code, which cubins are read as.
"""

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
_DUMP_SUFFIX = ".sass"
_MACHINE_SUFFIXES = (".cubin", _DUMP_SUFFIX)
_MOST_BYTES = 1 << 30
"""A larger library is not taken apart."""
_PROBE = 4096
_GARBAGE_SHARE = 0.05
"""Share of control bytes in the first bytes above which a file is no text."""
_MAGIC = (
    (b"\x7fELF", "an ELF file (a cubin or an object)", "give the .ptx it was assembled from"),
    (b"\x50\xed\x55\xba", "a CUDA fat binary", "extract its PTX: cuobjdump -ptx FILE"),
    (b"!<arch>\n", "an archive", "extract its PTX: cuobjdump -ptx FILE"),
    (b"BC\xc0\xde", "LLVM bitcode", "compile it to PTX first"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8 or ASCII"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8 or ASCII"),
    (b"\x1f\x8b", "a gzip file", "unpack it first"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
)


class Input(NamedTuple):
    """One text to check. `text` is None until it is read from `path`, or from the bytes of a
    `cubin` that lies in no file of its own; `metadata` is None when it is to be looked for beside
    the file. `launches` are those that came with it. `ptx` is what machine code was assembled
    from; None when that is to be looked for beside the file. `target` names the architecture whose
    code is meant, of a listing that holds code for several."""

    path: str
    text: str | None = None
    metadata: KernelMetadata | None = None
    launches: tuple[Launch, ...] = ()
    cubin: bytes | None = None
    ptx: str | None = None
    target: str = ""


class Code(NamedTuple):
    """A text that was read: PTX, or a listing of machine code, of this cubin if it is of one."""

    text: str
    is_machine: bool
    cubin: bytes | None = None


class InputFault(NamedTuple):
    """Something asked for that cannot be read: where, what is wrong, what to do. A note says that
    it was never there."""

    path: str
    message: str
    hint: str = ""
    is_note: bool = False


Found: TypeAlias = Input | InputFault


def discover(paths: Iterable[str | Input], machine_code: bool = False) -> list[Found]:
    """All inputs that these paths stand for, each once, in a fixed order.

    A directory stands for every `*.ptx` below it, a captured bundle for the kernels in its manifest
    with their launches; `-` for standard input; an `Input` for itself.

    With `machine_code` a file that holds cubins stands for each of them, and a directory also for
    those `*.cubin` and `*.sass` below it beside which no PTX lies: in a Triton cache both are of
    the same kernel.
    """
    found: list[Found] = []
    seen: set[str] = set()
    for path in paths:
        if isinstance(path, Input):
            found.append(path)
            continue
        for item in _expand(path, machine_code):
            key = item.path if isinstance(item, InputFault) else _key(item)
            if key not in seen:
                seen.add(key)
                found.append(item)
    return found


def _key(item: Input) -> str:
    return f"{os.path.abspath(item.path)}\0{item.target}"


def _expand(path: str, machine_code: bool) -> Iterator[Found]:
    if path == "-":
        yield from _read_stdin(machine_code)
    elif not path or "\0" in path:
        yield InputFault(path.replace("\0", "\\0"), "this is no path")
    elif os.path.isdir(path):
        items = list(_walk(path, machine_code))
        # A fault with advice is one of a bundle, which says more.
        if not any(isinstance(item, Input) or item.hint for item in items):
            also = " or *.cubin" if machine_code else ""
            hint = f"expected files named *.ptx{also}"
            yield InputFault(path, "no PTX in this directory", hint)
        yield from items
    elif not os.path.lexists(path):
        yield InputFault(path, "no such file or directory")
    elif machine_code:
        from ptxlint.frontends.machine_code import holds_cubins

        head = _head(path)
        yield from _members(path) if holds_cubins(head) else _targets(path, head)
    else:
        yield Input(path)


def _head(path: str) -> bytes:
    """The first bytes of a file; none of a pipe, which is not touched."""
    if not os.path.isfile(path):
        return b""
    try:
        with open(path, "rb") as stream:
            return stream.read(_PROBE)
    except OSError:
        return b""


def _targets(path: str, head: bytes) -> Iterator[Found]:
    """A file as one input; as one for each architecture, if it is a dump of code for several."""
    from ptxlint.frontends.machine_code import is_dump

    text = read(Input(path)) if is_dump(head) else ""
    yield from _of_each(Input(path), "" if isinstance(text, InputFault) else text)


def _of_each(item: Input, text: str) -> Iterator[Input]:
    from ptxlint.frontends.machine_code import targets

    found = targets(text)
    if len(found) < 2:
        yield item
    else:
        yield from (item._replace(target=target) for target in found)


def _members(path: str, data: bytes | None = None) -> Iterator[Found]:
    """The cubins in a file, each as an input called after both."""
    from ptxlint.frontends.machine_code import MachineCodeError, extracted, is_cut_off

    try:
        if data is None:
            if os.path.getsize(path) > _MOST_BYTES:
                message = f"this file has more than {_MOST_BYTES >> 20:,} MiB"
                yield InputFault(path, message, "extract its cubins: cuobjdump -xelf all FILE")
                return
            with open(path, "rb") as stream:
                data = stream.read()
        found = extracted(data)
    except OSError as error:
        yield InputFault(path, f"cannot read: {error.strerror or error}")
    except MachineCodeError as error:
        yield InputFault(path, f"the cubins in it cannot be extracted: {error}", error.hint)
    else:
        if found.fault:
            many = "cubin" if len(found.cubins) == 1 else f"{len(found.cubins)} cubins"
            message = f"behind the first {many} nothing can be extracted: {found.fault}"
            yield InputFault(path, message, "build or copy it again")
        elif not found.cubins and is_cut_off(data):
            yield InputFault(path, "the file is damaged or cut off", "build or copy it again")
        elif not found.cubins:
            message = "there is no machine code for a GPU in this file"
            yield InputFault(path, message, "if it holds PTX, extract it: cuobjdump -ptx FILE")
        for name, cubin in found.cubins.items():
            yield Input(f"{path}:{name}", cubin=cubin)


def _walk(top: str, machine_code: bool) -> Iterator[Found]:
    """Files to check below a directory, sorted; links to directories are not followed."""
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
        taken = {n[:-4] for n in names if n.lower().endswith(".ptx")}
        for name in sorted(names):
            if _is_wanted(name, taken, machine_code) and not name.startswith(GROUP_PREFIX):
                path = os.path.join(directory, name).removeprefix(_HERE)
                # A pipe or a device in a tree would block; a broken link is reported on reading.
                if os.path.isfile(path) or not os.path.exists(path):
                    is_dump = path.lower().endswith(_DUMP_SUFFIX)
                    yield from _targets(path, _head(path)) if is_dump else (Input(path),)
    for fault in faults:
        yield InputFault(str(fault.filename), f"cannot list: {fault.strerror}")


def _is_wanted(name: str, stems: set[str], machine_code: bool) -> bool:
    """True for PTX, and for machine code beside which none of these stems' PTX lies."""
    lower = name.lower()
    if lower.endswith(".ptx"):
        return True
    if not machine_code or not lower.endswith(_MACHINE_SUFFIXES):
        return False
    stem = name.rpartition(".")[0]
    if stem in stems:
        return False
    # The cubin and its listing are one kernel too.
    stems.add(stem)
    return True


def _read_stdin(machine_code: bool) -> Iterator[Found]:
    from ptxlint.frontends.machine_code import holds_cubins, is_cubin

    data = _stdin_bytes()
    if isinstance(data, InputFault):
        yield data
    elif machine_code and is_cubin(data):
        yield Input(STDIN, cubin=data)
    elif machine_code and holds_cubins(data):
        yield from _members(STDIN, data)
    else:
        text = decode(data, STDIN)
        if isinstance(text, InputFault):
            yield text
        elif machine_code:
            yield from _of_each(Input(STDIN, text), text)
        else:
            yield Input(STDIN, text)


def _stdin_bytes() -> bytes | InputFault:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        return InputFault(STDIN, "standard input is closed")
    try:
        data: bytes = stream.read()
    except OSError as error:
        return InputFault(STDIN, f"cannot read: {error.strerror or error}")
    return data


def read(item: Input) -> str | InputFault:
    """The text of an input that is to be PTX."""
    if item.text is not None:
        return item.text if item.text.strip() else _empty(item.path)
    data = _bytes(item)
    return data if isinstance(data, InputFault) else decode(data, item.path)


def read_code(item: Input) -> Code | InputFault:
    """The text of an input that is PTX or machine code."""
    from ptxlint.frontends.machine_code import (
        MachineCodeError,
        disassembled,
        is_cubin,
        is_listing,
        listing,
        of_target,
    )

    try:
        if item.text is None:
            data = _bytes(item)
            if isinstance(data, InputFault):
                return data
            if is_cubin(data):
                return Code(disassembled(data), True, data)
            text = decode(data, item.path)
        else:
            text = read(item)
        if isinstance(text, InputFault):
            return text
        if not is_listing(text):
            return Code(text, False)
        return Code(of_target(listing(text), item.target), True)
    except MachineCodeError as error:
        return InputFault(item.path, str(error), error.hint)


def _bytes(item: Input) -> bytes | InputFault:
    if item.cubin is not None:
        return item.cubin
    try:
        with open(item.path, "rb") as stream:
            return stream.read()
    except OSError as error:
        return InputFault(item.path, f"cannot read: {error.strerror or error}")


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
