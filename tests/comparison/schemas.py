"""Reports as data, held to the schemas in docs/."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from ptxlint.comparison.architectures import ArchitectureReport
from ptxlint.comparison.report import DiffReport
from ptxlint.reporters import compare_json, diff_json

DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def validator(name: str) -> Draft202012Validator:
    """That of `docs/NAME.schema.json`."""
    schema = json.loads((DOCS / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def valid(name: str, text: str) -> dict[str, Any]:
    """What a JSON text says, once it is held to the schema."""
    data: dict[str, Any] = json.loads(text)
    validator(name).validate(data)
    return data


def diff_data(report: DiffReport) -> dict[str, Any]:
    """What `--format json` says of a comparison of two builds."""
    return valid("diff", diff_json.render_json(report))


def compare_data(report: ArchitectureReport) -> dict[str, Any]:
    """What `--format json` says of a comparison over architectures."""
    return valid("compare", compare_json.render_json(report))
