"""Executing a file that people wrote, as a module."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType

from ptxlint.dynamic.operators.spec import SpecError


def executed(path: str, without_calls_of: str = "") -> ModuleType:
    """A file of Python, executed as a module.

    Its directory comes first on `sys.path`, and stays there. Statements at its top that call
    functions whose names begin with `without_calls_of` are left out, and so are those that use what
    these would have made. Raises `SpecError` with file
    and line, whatever the file does.
    """
    file = Path(path)
    if str(file.parent.resolve()) not in sys.path:
        sys.path.insert(0, str(file.parent.resolve()))
    # Two files of one name are two modules, and a file `torch.py` is not torch.
    place = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    name = f"ptxlint_specs_{place}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise SpecError(f"{path}: not a file of Python (*.py)")
    module = importlib.util.module_from_spec(spec)
    # Triton and dataclasses look functions' modules up there.
    sys.modules[name] = module
    try:
        if without_calls_of:
            exec(_without_calls(file, without_calls_of), vars(module))
        else:
            spec.loader.exec_module(module)
    except SyntaxError as error:
        own = error.filename in (None, str(file.resolve()))
        where = path if own else error.filename
        raise SpecError(f"{where}:{error.lineno or 1}: {error.msg}") from None
    except FileNotFoundError as error:
        missing = error.filename == str(file.resolve())
        raise SpecError(f"{path}: no such file" if missing else told(error, path)) from error
    except (Exception, SystemExit) as error:
        raise SpecError(told(error, path)) from error
    return module


def _without_calls(file: Path, prefix: str) -> CodeType:
    """A file without the statements at its top that call functions of such names, and those that
    use what these would have made."""
    tree = ast.parse(file.read_bytes(), str(file.resolve()))
    kept, missing = [], set[str]()
    for statement in tree.body:
        if _is_call(statement, prefix) or _reads(statement, missing):
            missing |= _assigned(statement)
        else:
            missing -= _assigned(statement)
            kept.append(statement)
    tree.body = kept
    return compile(tree, str(file.resolve()), "exec")


def _is_call(statement: ast.stmt, prefix: str) -> bool:
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign) or not statement.value:
        return False
    calls = [node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    return any(isinstance(func, ast.Name) and func.id.startswith(prefix) for func in calls)


def _reads(statement: ast.stmt, names: set[str]) -> bool:
    """True for a statement at the top, no definition, that needs one of these names."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return False
    used = {node.id for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}  # fmt: skip
    return not used.isdisjoint(names)


def _assigned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip


def located(path: str) -> str:
    """A path as it is, or from the directories of files that were executed."""
    places = [Path(path), *(Path(entry) / path for entry in sys.path)]
    return next((str(place) for place in places if place.is_file()), path)


def told(error: BaseException, path: str) -> str:
    """An exception with the last line of the file that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(Path(path).resolve())]
    line = own[-1].lineno if own else 1
    if isinstance(error, SystemExit):
        return f"{path}:{line}: it ends the process (exit status {error.code!r})"
    # What ptxlint says of a spec is a sentence of its own.
    kind = "" if isinstance(error, SpecError) else f"{type(error).__name__}: "
    return f"{path}:{line}: {kind}{error}"


__all__ = ["executed", "located", "told"]
