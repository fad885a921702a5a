"""Hand-written launches: what is read, what is filled in, and what is said of faults."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ptxlint.frontends.launch_file import LaunchFileError, parse_launches, read_launch_file
from ptxlint.launches import (
    AS_COMPILED,
    DTYPE_BYTES,
    SCALAR_BYTES,
    Autotuned,
    Constant,
    Descriptor,
    Launch,
    Scalar,
    Tensor,
    Unknown,
)

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/launch.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def read(launch: dict[str, Any]) -> Launch:
    data = {"launches": [launch]}
    VALIDATOR.validate(data)
    (found,) = parse_launches(json.dumps(data), "l.json")
    return found


def argument(value: Any) -> Any:
    (found,) = read({"grid": 1, "arguments": {"a": value}}).arguments.values()
    return found


def test_the_least_that_can_be_said() -> None:
    launch = read({"grid": 7, "arguments": {}})
    assert launch == Launch((7, 1, 1), AS_COMPILED, {}, place="l.json:1", is_ordered=False)


def test_all_that_can_be_said() -> None:
    launch = read(
        {
            "kernel": "k",
            "grid": [7, 6],
            "block": [64, 2, 1],
            "cluster": [2, 1, 1],
            "shared": 1024,
            "scratch": [0, 16],
            "count": 5,
            "place": {"path": "train.py", "line": 31},
            "autotuned": {"configurations": 4, "reset": ["x"], "restored": []},
            "arguments": [1, "int8[3]"],
        }
    )
    assert launch == Launch(
        (7, 6, 1),
        (64, 2, 1),
        {"0": Scalar("", 1), "1": Tensor("int8", (3,), (1,), 0, 3)},
        1024,
        (2, 1, 1),
        Autotuned(4, ("x",)),
        "train.py:31",
        5,
        True,
        "k",
        (0, 16),
    )


def test_numbers_and_constants() -> None:
    assert argument(3) == Scalar("", 3)
    assert argument(True) == Scalar("", 1)
    assert argument({"kind": "scalar", "type": "fp32", "value": 2.5}) == Scalar("fp32", 2.5)
    infinite = argument({"kind": "scalar", "type": "fp32", "value": "-inf"})
    assert infinite == Scalar("fp32", float("-inf"))
    assert argument(None) == Constant("None")
    assert argument({"kind": "constant", "value": "float32"}) == Constant("float32")
    assert argument({"kind": "constant", "value": 128}) == Constant("128")
    assert argument({"kind": "unknown", "type": "i32", "reason": "why"}) == Unknown("i32", "why")


def test_tensors_have_no_gaps_unless_they_say_so() -> None:
    assert argument("float32[4, 8]") == Tensor("float32", (4, 8), (8, 1), 0, 128)
    assert argument("bfloat16[]") == Tensor("bfloat16", (), (), 0, 2)
    assert argument("int64[3, 0, 5]") == Tensor("int64", (3, 0, 5), (5, 5, 1), 0, 0)
    strided = {"kind": "tensor", "dtype": "float16", "shape": [4, 8], "strides": [16, 2]}
    assert argument(strided) == Tensor("float16", (4, 8), (16, 2), 0, 2 * (48 + 14 + 1))
    view = argument({**strided, "offset": 4, "storage_bytes": 4096, "fresh": "zeroed"})
    assert view == Tensor("float16", (4, 8), (16, 2), 0, 4096, 4, 4, "zeroed")
    assert argument({**strided, "offset": 96, "alignment": 32}).alignment == 32


def test_a_storage_that_was_freed_is_so_for_all_its_tensors() -> None:
    gone = {"kind": "tensor", "dtype": "float32", "shape": [8], "storage": "s", "freed": True}
    part = {"kind": "tensor", "dtype": "float32", "shape": [4], "storage": "s"}
    given = {"gone": gone, "part": part, "other": "float32[8]"}
    found = read({"grid": 1, "arguments": given}).arguments
    assert [isinstance(one, Tensor) and one.freed for one in found.values()] == [True, True, False]
    assert argument({**gone, "freed": False}).freed is False


def test_the_elements_of_a_tensor_may_be_promised() -> None:
    tokens = {"kind": "tensor", "dtype": "int64", "shape": [8], "values": [0, 31999]}
    assert argument(tokens).values == (0, 31999)


def test_the_elements_of_a_storage_may_be_told() -> None:
    ids = {"kind": "tensor", "dtype": "int16", "shape": [2], "offset": 4, "storage_bytes": 8}
    found = argument({**ids, "contents": [-5, 0, 7, 3]})
    assert (found.contents, found.values) == ((-5, 0, 7, 3), (-5, 7))


def test_views_of_one_storage_alias() -> None:
    first = {"kind": "tensor", "dtype": "float32", "shape": [8], "storage": "buffer"}
    launch = read(
        {
            "grid": 1,
            "arguments": {"a": first, "b": {**first, "offset": 32}, "c": "float32[8]", "d": first},
        }
    )
    tensors = list(launch.arguments.values())
    assert all(isinstance(t, Tensor) for t in tensors)
    assert [(t.storage, t.storage_bytes) for t in tensors if isinstance(t, Tensor)] == [
        (0, 64),
        (0, 64),
        (1, 32),
        (0, 64),
    ]


def test_tuples_are_taken_apart() -> None:
    nested = {"kind": "tuple", "items": [1, [2, None]]}
    launch = read({"grid": 1, "arguments": {"t": nested}})
    assert launch.arguments == {
        "t[0]": Scalar("", 1),
        "t[1][0]": Scalar("", 2),
        "t[1][1]": Constant("None"),
    }


def test_descriptors() -> None:
    found = argument({"kind": "descriptor", "tensor": "float16[64, 64]", "block": [16, 64]})
    assert found == Descriptor(Tensor("float16", (64, 64), (64, 1), 0, 8192), (16, 64))
    passed = [{"kind": "scalar", "type": "i64", "value": 64}]
    more = {"padding": "nan", "by": "map", "passed": passed}
    tensor = {"dtype": "float16", "shape": [64]}
    found = argument({"kind": "descriptor", "tensor": tensor, "block": [16], **more})
    assert (found.padding, found.by, found.passed) == ("nan", "map", (Scalar("i64", 64),))


TENSOR = {"kind": "tensor", "dtype": "float32", "shape": [8]}
IDS = {"kind": "tensor", "dtype": "int32", "shape": [8]}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("float33[8]", 'expected a tensor such as "float32[100, 1000]", found "float33[8]"; did'),
        ({**TENSOR, "dtype": "f32"}, ".dtype: expected one of "),
        ({**TENSOR, "shape": [8, -1]}, ".shape[1]: -1 is out of range, expected at least 0"),
        ({**TENSOR, "shape": 8}, ".shape: expected a list of whole numbers, found 8"),
        ({**TENSOR, "shape": [8.0]}, ".shape[0]: expected a whole number, found 8.0"),
        ({**TENSOR, "stride": [1]}, ".stride: `stride` is no key of a tensor; did you mean `stri"),
        ({**TENSOR, "strides": [1, 1]}, ".strides: 2 strides for 1 extents"),
        ({**TENSOR, "strides": [-1]}, "the tensor begins 28 bytes before its storage"),
        ({**TENSOR, "storage_bytes": 31}, "the tensor ends at byte 32, and its storage has 31"),
        ({**IDS, "values": [5, 4]}, ".values: expected the least and the greatest element"),
        ({**IDS, "values": [0, 2**31]}, ".values[1]: 2147483648 is out of range"),
        ({**TENSOR, "values": [0, 7]}, ".values: only what a tensor of integers holds can be told"),
        ({**IDS, "contents": [1, 2, 3]}, ".contents: 3 numbers, and the storage holds 8: all of"),
        ({**IDS, "contents": [0] * 7 + [0.5]}, ".contents[7]: expected a whole number, found 0.5"),
        ({**IDS, "contents": [0] * 7 + [2**31]}, ".contents[7]: 2147483648 is out of range"),
        ({**IDS, "contents": []}, ".contents: expected the integers in the tensor's storage"),
        ({**IDS, "contents": [0] * 8, "values": [0, 7]}, ".values: `contents` has numbers from 0"),
        ({**TENSOR, "contents": [0] * 8}, ".contents: only what a tensor of integers holds"),
        ({**IDS, "dtype": "uint8", "contents": [0] * 7 + [-1]}, ".contents[7]: -1 is out of range"),
        ({**TENSOR, "freed": "yes"}, ".freed: expected true or false"),
        ({**TENSOR, "alignment": 12}, ".alignment: 12 is no power of two"),
        ({"kind": "tensor", "shape": [8]}, "`dtype` is missing"),
        ({"dtype": "float32"}, '`kind` is missing: one of "tensor", "scalar"'),
        ({"kind": "tensr"}, '.kind: expected one of "tensor"'),
        ({"kind": "scalar", "type": "i32", "value": 0.5}, ".value: expected a whole number, as"),
        ({"kind": "scalar", "value": "x"}, '.value: expected a number, or "inf"'),
        ({"kind": "constant"}, "`value` is missing: what the constant is"),
        (
            {"kind": "descriptor", "tensor": TENSOR, "block": [8, 8]},
            ".block: 2 extents for a tensor of 1 axes",
        ),
    ],
)
def test_a_fault_of_an_argument_is_told(value: Any, says: str) -> None:
    text = json.dumps({"launches": [{"grid": 1, "arguments": {"a": value}}]})
    with pytest.raises(LaunchFileError, match=re.escape(says)) as caught:
        parse_launches(text, "l.json")
    assert str(caught.value).startswith("l.json:1: launches[0].arguments.a")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "l.json:1:1: no valid JSON: Expecting value"),
        ('{"launches": [}', "l.json:1:15: no valid JSON: "),
        ('{"a": 1, "a": 2}', "l.json: no valid JSON: the key `a` stands twice"),
        ('{"a": NaN}', 'l.json: no valid JSON: NaN is no number of JSON; write "nan" as the'),
        ("[" * 100_000, "l.json: the JSON is nested too deeply"),
        ("[]", "l.json: expected a launch file, an object, found []"),
        ("{}", "l.json: `launches` is missing: a list, as in {"),
        ('{"launches": []}', "l.json:1: launches: there is no launch in it"),
        ('{\n"launch": []}', "l.json:2: launch: `launch` is no key of a launch file; did you"),
        ('{"version": 2, "launches": []}', "version: version 2 is not known, this ptxlint reads 1"),
        ('{"launches": [\n{"grid": 1}]}', "l.json:2: launches[0]: `arguments` is missing"),
        ('{"launches": [{"arguments": {}}]}', "launches[0]: `grid` is missing: CTAs in x, y"),
        (
            '{"launches": [{"grid": 1, "arguments": {}},\n\n{"grid": [1, 2,\n-3]}]}',
            "l.json:3: launches[1]: `arguments` is missing",
        ),
        (
            '{"launches": [{"arguments": {}, "grid": [1, 2,\n-3]}]}',
            "l.json:2: launches[0].grid[2]: -3 is out of range, expected at least 0",
        ),
        (
            '{"launches": [{"arguments": {}, "grid": [1, 2, 3, 4]}]}',
            "launches[0].grid: expected 1 to 3 numbers (x, y, z), found 4",
        ),
        (
            '{"launches": [{"arguments": {}, "grid": 1, "scratch": [1]}]}',
            "launches[0].scratch: expected bytes for 2 pointers, found 1",
        ),
        (
            '{"launches": [{"arguments": {"out": 1, "x": 2}, "grid": 1,\n'
            '"autotuned": {"configurations": 4, "reset": ["x", "uot"]}}]}',
            "l.json:2: launches[0].autotuned.reset[1]: no argument is called `uot`; did you mean "
            "`out`?",
        ),
        (
            '{"launches": [{"arguments": {"x": [1], "x[0]": 2}, "grid": 1}]}',
            "launches[0].arguments['x[0]']: two arguments are called `x[0]`",
        ),
    ],
)
def test_a_fault_of_the_file_is_told(text: str, says: str) -> None:
    with pytest.raises(LaunchFileError) as caught:
        parse_launches(text, "l.json")
    assert says in str(caught.value)


def test_one_storage_has_one_size() -> None:
    a, b = ({**TENSOR, "storage": 1, "storage_bytes": size} for size in (64, 128))
    text = json.dumps({"launches": [{"grid": 1, "arguments": {"a": a, "b": b}}]})
    with pytest.raises(LaunchFileError, match="128 bytes here, 64 at launches"):
        parse_launches(text, "l.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LaunchFileError, match="No such file"):
        read_launch_file(str(tmp_path / "none.json"))
    with pytest.raises(LaunchFileError, match="Is a directory"):
        read_launch_file(str(tmp_path))
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"launches": "\xe9"}')
    with pytest.raises(LaunchFileError, match="no UTF-8 text, see byte 14"):
        read_launch_file(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + b'{"launches": [{"grid": 1, "arguments": {}}]}')
    assert len(read_launch_file(str(path))) == 1


def test_each_launch_knows_its_line() -> None:
    one = '{"grid": 1,\n "arguments": {"a": "float32[2]"}}'
    text = f'{{"version": 1,\n "launches": [\n{one},\n\n{one},{one}]}}'
    assert [launch.place for launch in parse_launches(text, "l.json")] == [
        "l.json:3",
        "l.json:6",
        "l.json:7",
    ]


def test_the_schema_knows_the_same_words() -> None:
    definitions = SCHEMA["$defs"]
    assert definitions["dtype"]["enum"] == list(DTYPE_BYTES)
    assert definitions["type"]["enum"] == list(SCALAR_BYTES)


def test_the_example_in_the_docs_is_valid() -> None:
    page = (ROOT / "docs/launch-files.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    VALIDATOR.validate(json.loads(example))
    file = (ROOT / "docs/softmax-launch.json").read_text(encoding="utf-8")
    assert example == file
    assert f"```json\n{file}```" in (ROOT / "README.md").read_text(encoding="utf-8")
    (launch,) = parse_launches(example, "launches.json")
    assert launch.grid == (1823, 1, 1)
    broken = example.replace('"float32[1823, 781]"', '"flaot32[1823, 781]"')
    with pytest.raises(LaunchFileError) as caught:
        parse_launches(broken, "launches.json")
    assert f"Error: {caught.value}" in page


FULL: dict[str, Any] = {
    "version": 1,
    "launches": [
        {
            "kernel": "k",
            "grid": [7, 6],
            "block": 64,
            "shared": 1024,
            "scratch": [0, 16],
            "count": 5,
            "place": {"path": "train.py", "line": 31},
            "autotuned": {"configurations": 4, "reset": ["x"]},
            "arguments": {
                "x": {**TENSOR, "strides": [2], "storage": "s", "storage_bytes": 99, "offset": 4},
                "d": {
                    "kind": "descriptor",
                    "tensor": TENSOR,
                    "block": [8],
                    "by": "map",
                    "passed": [{"type": "i32", "value": 8}],
                },
                "t": {"kind": "tuple", "items": [1, "int8[3]", None]},
                "n": {"kind": "scalar", "type": "fp32", "value": "nan"},
                "c": {"kind": "constant", "value": [1]},
            },
        }
    ],
}
JUNK = (
    None,
    True,
    -1,
    0,
    1 << 70,
    0.5,
    "",
    "x",
    "int8[2]",
    [],
    [[]],
    [3, -2],
    {},
    {"kind": "scalar"},
)


def changed(data: Any) -> Iterator[Any]:
    """The data with one piece after the other replaced by each kind of junk."""
    yield from JUNK
    if isinstance(data, dict):
        for key, value in data.items():
            yield {k: v for k, v in data.items() if k != key}
            yield {**data, "junk": 1}
            for other in changed(value):
                yield {**data, key: other}
    elif isinstance(data, list):
        for at, value in enumerate(data):
            for other in changed(value):
                yield [*data[:at], other, *data[at + 1 :]]


def fault_of(data: Any) -> str:
    try:
        parse_launches(json.dumps(data, indent=1), "l.json")
    except LaunchFileError as error:
        return str(error)
    return ""


def test_no_piece_of_junk_is_more_than_an_error() -> None:
    VALIDATOR.validate(FULL)
    assert fault_of(FULL) == ""
    faults = [(fault_of(data), data) for data in changed(FULL)]
    told = [fault for fault, _ in faults if fault]
    assert [fault for fault in told if not re.match(r"l\.json(:\d+)?: ", fault)] == []
    # What is read is valid by the schema, too.
    read = [data for fault, data in faults if not fault]
    assert [data for data in read if not VALIDATOR.is_valid(data)] == []
    assert min(len(told), len(read)) > 50
