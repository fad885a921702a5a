"""What Triton leaves beside a kernel: `KERNEL.json`, the compiler's metadata.

A cache entry is a directory of `KERNEL.ptx`, `KERNEL.json`, `KERNEL.cubin` and so on, and a
`__grp__KERNEL.json` that only lists them.
"""

from __future__ import annotations

from typing import Any

from ptxlint.facts import KernelMetadata
from ptxlint.frontends.stems import beside

GROUP_PREFIX = "__grp__"
_MAX_BYTES = 16 << 20
_FIELDS = {"num_warps": 64, "num_stages": 1 << 10, "shared": 1 << 30}
"""Integer fields with the largest value that makes sense."""


class MetadataError(Exception):
    """The file beside a kernel is unreadable or is no JSON object; the text says which."""


def metadata_path(ptx_path: str) -> str:
    """Where the metadata of a PTX file, or of its machine code, would lie."""
    return beside(ptx_path, ".json")


def load_metadata(ptx_path: str) -> KernelMetadata | None:
    """The metadata beside a PTX file; None when there is none or it is something else's file.

    Raises `MetadataError` when a file is there and cannot be read as JSON.
    """
    path = metadata_path(ptx_path)
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MetadataError(f"{path}: {error.strerror or error}") from None
    if len(data) > _MAX_BYTES:
        return None
    return parse_metadata(data, path)


def parse_metadata(data: bytes, path: str) -> KernelMetadata | None:
    """Metadata from the bytes of a .json; None when it is JSON of another kind."""
    import json

    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"{path}: no valid JSON: {error}") from None
    if not isinstance(content, dict) or not ({"num_warps", "shared"} & content.keys()):
        return None
    name = content.get("name")
    numbers = {field: _integer(content, field, most) for field, most in _FIELDS.items()}
    return KernelMetadata(name=name if isinstance(name, str) else None, path=path, **numbers)


def _integer(content: dict[str, Any], field: str, most: int) -> int | None:
    value = content.get(field)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    return None
