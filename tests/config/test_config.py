"""Settings: found, read, and refused with a place and a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.config import Config, ConfigError, find_config, load_config


def _write(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_all_keys_are_read(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        """
[project]
name = "x"

[tool.ptxlint]
select = ["MSK", "NUM407"]
ignore = ["RES101"]
arch = ["sm_90", "80"]
format = "json"
exit-zero = true

[tool.ptxlint.per-path-ignores]
"third_party/*" = ["ALL"]
""",
    )
    config = load_config(str(path))
    assert config.select == ("MSK", "NUM407")
    assert config.ignore == ("RES101",)
    assert config.arch == ("sm_90", "sm_80")
    assert config.format == "json"
    assert config.exit_zero is True
    assert config.per_path_ignores == (("third_party/*", ("ALL",)),)
    assert Path(config.root).resolve() == tmp_path.resolve()


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("selct = []", 2, ["unknown key 'selct'", "did you mean 'select'"]),
        ("\nexit_zero = true", 3, ["unknown key 'exit_zero'", "did you mean 'exit-zero'"]),
        ("zzz = 1", 2, ["unknown key 'zzz'", "known keys: select, ignore"]),
        ('select = "MSK"', 2, ["'select' must be a list", "select = ['MSK']"]),
        ("ignore = [1]", 2, ["'ignore' must be a list of strings"]),
        ('arch = ["sm90x"]', 2, ["'sm90x' is no architecture", "sm_90"]),
        ('format = "jsn"', 2, ["'format' cannot be 'jsn'", "did you mean 'json'"]),
        ('exit-zero = "yes"', 2, ["'exit-zero' must be true or false"]),
        ("per-path-ignores = []", 2, ["'per-path-ignores' must be a table"]),
        ('per-path-ignores = {"a*" = "ALL"}', 2, ["'a*' must be a list of strings"]),
    ],
)
def test_a_fault_names_its_line(tmp_path: Path, body: str, line: int, words: list[str]) -> None:
    path = _write(tmp_path, f"[tool.ptxlint]\n{body}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(str(path))
    text = str(caught.value)
    assert f"pyproject.toml:{line}: " in text
    for word in words:
        assert word in text


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = _write(tmp_path, "[tool.ptxlint]\nselct = []\nformat = 3\n")
    with pytest.raises(ConfigError) as caught:
        load_config(str(path))
    assert len(str(caught.value).splitlines()) == 2


def test_a_key_of_another_table_is_not_blamed(tmp_path: Path) -> None:
    path = _write(tmp_path, '[tool.other]\nformat = "x"\n\n[tool.ptxlint]\nformat = "x"\n')
    with pytest.raises(ConfigError, match=r"pyproject.toml:5: "):
        load_config(str(path))


def test_broken_toml_names_its_line(tmp_path: Path) -> None:
    path = _write(tmp_path, "[tool.ptxlint]\nselect = [\n")
    with pytest.raises(ConfigError, match="no valid TOML"):
        find_config(str(path.parent))


def test_the_nearest_table_upwards_is_found(tmp_path: Path) -> None:
    _write(tmp_path, '[tool.ptxlint]\nselect = ["NUM"]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    _write(tmp_path / "a", '[project]\nname = "ptxlint-user"\n')
    (inner / "k.ptx").touch()
    assert find_config(str(inner / "k.ptx")).select == ("NUM",)
    _write(inner, '[tool.ptxlint]\nselect = ["RES"]\n')
    assert find_config(str(inner / "k.ptx")).select == ("RES",)


@pytest.mark.parametrize(
    "text",
    [
        '[tool]\nptxlint.select = ["NUM"]\n',
        'tool.ptxlint.select = ["NUM"]\n',
        'tool = {ptxlint = {select = ["NUM"]}}\n',
        '[ "tool" . \'ptxlint\' ]\nselect = ["NUM"]\n',
    ],
)
def test_every_spelling_of_the_table_is_found(tmp_path: Path, text: str) -> None:
    _write(tmp_path, text)
    assert find_config(str(tmp_path)).select == ("NUM",)


def test_no_file_changes_nothing(tmp_path: Path) -> None:
    assert find_config(str(tmp_path / "nowhere" / "k.ptx")) == Config()


def test_a_named_file_must_have_the_table(tmp_path: Path) -> None:
    path = _write(tmp_path, "[project]\n")
    with pytest.raises(ConfigError, match=r"no \[tool.ptxlint\] table"):
        load_config(str(path))
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(str(tmp_path / "nix.toml"))
