"""The source distribution, the wheel built from it, and that wheel at work elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from re import match

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PLACES: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
VERSION: str = PROJECT["project"]["version"]
FIXTURE = ROOT / "fixtures" / "ptx-nvcc" / "sm_90" / "doubles.ptx"
NOT_SOURCES = (".*", "__pycache__", "*.egg-info", "build", "dist", "fixtures")


def expected_files(source: Path) -> dict[str, str]:
    """Every file of the packages in a source tree: name there by its installed name."""
    names = {}
    for package, place in PLACES.items():
        for path in (source / place).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                inner = path.relative_to(source / place).as_posix()
                names[f"{package.replace('.', '/')}/{inner}"] = f"{place}/{inner}"
    return names


def run(*command: str | Path, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **settings,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the sources in `source`, and in `dist` what was built of it."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_SOURCES))
    # Without --sdist or --wheel, `build` makes the wheel from the unpacked source distribution.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The one wheel."""
    (path,) = (built / "dist").glob("*.whl")
    return path


def test_wheel_holds_exactly_the_packages(built: Path, wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    outside = [n for n in names if not n.startswith(f"ptxlint-{VERSION}.dist-info/")]
    assert set(outside) == set(expected_files(built / "source"))
    assert len(outside) == len(set(outside))
    assert {name.partition("/")[0] for name in outside} == {"ptxlint"}


def test_wheel_holds_the_data_that_is_read_at_run_time(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "ptxlint/py.typed" in names
    assert "ptxlint/grammar/ptx.lark" in names
    assert [n for n in names if match(r"ptxlint/grammar/.*\.json$", n)]


def test_wheel_is_for_every_machine(wheel: Path) -> None:
    """Machine code is in a wheel only where it was asked for."""
    assert wheel.name == f"ptxlint-{VERSION}-py3-none-any.whl"


def test_wheel_describes_itself(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    text = archive.read(f"ptxlint-{VERSION}.dist-info/METADATA").decode()
    metadata: Message = HeaderParser().parsestr(text)
    assert metadata["Name"] == "ptxlint"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    core = [r for r in metadata.get_all("Requires-Dist", []) if "extra ==" not in r]
    named = {match(r"[\w-]+", r)[0] for r in core}  # type: ignore[index]
    assert named == {"lark", "networkx", "numpy", "click", "pyelftools"}
    licence = archive.read(f"ptxlint-{VERSION}.dist-info/licenses/LICENSE").decode()
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert (ROOT / "README.md").read_text(encoding="utf-8") in text


def test_source_distribution_holds_the_packages(built: Path) -> None:
    (path,) = (built / "dist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    assert set(expected_files(built / "source").values()) <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= names


def core_dependencies() -> Iterator[Path]:
    """Files and folders at the top of site-packages that the core dependencies consist of."""
    waiting, seen = ["lark", "networkx", "numpy", "click"], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        waiting += [
            match(r"[\w.-]+", r)[0]  # type: ignore[index]
            for r in found.requires or []
            if "extra ==" not in r and "platform_system" not in r
        ]
        tops = {file.parts[0] for file in found.files or [] if file.parts[0] != ".."}
        yield from (Path(str(found.locate_file(top))) for top in sorted(tops))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `ptxlint` command of a fresh environment that has the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    show = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(python, "-c", show).stdout.strip())
    for path in core_dependencies():
        if path.name != "__pycache__":
            (packages / path.name).symlink_to(path)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", wheel)
    return environment / "bin" / "ptxlint"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside the repository with one file to check."""
    shutil.copy(FIXTURE, tmp_path / "doubles.ptx")
    return tmp_path


def homeless() -> dict[str, str]:
    """An environment in which nothing can be written to the home, even by root."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "XDG_"))}
    return kept | {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}


def test_installed_command_tells_its_version(installed: Path, elsewhere: Path) -> None:
    done = run(installed, "--version", cwd=elsewhere, env=homeless())
    assert done.stdout == f"ptxlint {VERSION}\n"


def test_installed_command_checks_a_file(installed: Path, elsewhere: Path) -> None:
    command = [str(installed), "check", "--format", "json", "doubles.ptx"]
    done = subprocess.run(
        command, cwd=elsewhere, env=homeless(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert "NUM407" in {finding["rule"] for finding in report["findings"]}
    assert report["summary"]["files"] == 1
    assert [path.name for path in elsewhere.iterdir()] == ["doubles.ptx"]


def test_installed_command_needs_no_development_package(installed: Path, elsewhere: Path) -> None:
    """The rules, the reference parser and the drawing work on the core dependencies."""
    rules = json.loads(run(installed, "rules", "--format", "json", env=homeless()).stdout)
    names = [path.stem for path in (ROOT / "rules").glob("*.py") if path.stem != "__init__"]
    assert {name.partition("_")[0].upper() for name in names} <= {rule["id"] for rule in rules}
    done = run(
        installed, "check", "--parser", "lark", "--exit-zero", "doubles.ptx",
        cwd=elsewhere, env=homeless(),
    )  # fmt: skip
    assert "NUM407" in done.stdout
    for what in ("ir", "facts", "cfg"):
        assert run(installed, "show", what, "doubles.ptx", cwd=elsewhere, env=homeless()).stdout


def test_installed_package_is_the_wheel(installed: Path, elsewhere: Path) -> None:
    """Not the sources in the repository."""
    code = "import ptxlint, ptxlint.rules, ptxlint.grammar as g; print(*ptxlint.rules.__path__)"
    done = run(installed.parent / "python", "-c", code, cwd=elsewhere, env=homeless())
    place = Path(done.stdout.strip())
    assert installed.parent.parent in place.parents
    assert place.parts[-2:] == ("ptxlint", "rules")
