"""The command line as a shell sees it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
LAUNCH = ROOT / "docs" / "softmax-launch.json"
LAUNCHED = ROOT / "fixtures" / "ptx" / "sm_90" / "softmax.ptx"
FIXTURE = ROOT / "fixtures" / "ptx" / "sm_90" / "flash_bwd_dkdv.ptx"
SMALL = FIXTURE.with_name("relu.ptx")
KERNEL = """\
.version 8.0
.target {target}
.address_size 64
.visible .entry {name}(.param .u64 out)
{{
    .reg .b64 %rd<4>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [out];
    mov.f32 %f0, 0f3F800000;
    cvt.f64.f32 %rd2, %f0;
    mul.f64 %rd3, %rd2, %rd2;
    cvt.rn.f32.f64 %f1, %rd3;
    st.global.f32 [%rd1], {value};
    ret;
}}
"""
STRAY = KERNEL.format(target="sm_80", name="stray", value="%f1")
CLEAN = KERNEL.format(target="sm_80", name="clean", value="%f1").replace(
    "mul.f64 %rd3, %rd2, %rd2;", "mov.b64 %rd3, %rd2;"
)


def ptxlint(
    *arguments: str | Path, input: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command; its output never holds a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "ptxlint", *map(str, arguments)],
        input=input,
        stdin=None if input is not None else subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stray.ptx").write_text(STRAY)
    (tmp_path / "clean.ptx").write_text(CLEAN)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["clean.ptx"], 0),
        (["stray.ptx"], 1),
        (["."], 1),
        (["stray.ptx", "--exit-zero"], 0),
        (["gone.ptx", "--exit-zero"], 2),
        (["gone.ptx", "stray.ptx"], 2),
        (["stray.ptx", "--ignore", "NUM407"], 0),
        (["stray.ptx", "--ignore", "RES,NUM4"], 0),
        (["stray.ptx", "--select", "RES103"], 0),
        (["stray.ptx", "--select", "stray-f64"], 1),
        (["stray.ptx", "--select", "NOPE"], 2),
        (["stray.ptx", "--arch", "sm_80"], 1),
        (["stray.ptx", "--arch", "sm_90"], 2),
        (["stray.ptx", "--arch", "volta"], 2),
        (["stray.ptx", "--parser", "lark"], 1),
        (["stray.ptx", "--jobs", "-1"], 2),
        (["stray.ptx", "clean.ptx", "--jobs", "2"], 1),
        (["stray.ptx", "--format", "xml"], 2),
        (["stray.ptx", "--config", "gone.toml"], 2),
        (["stray.ptx", "--config", "x", "--no-config"], 2),
        ([], 2),
    ],
)
def test_exit_status(folder: Path, arguments: list[str], code: int) -> None:
    done = ptxlint("check", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert (done.stdout or done.stderr).strip()


def test_text_of_a_finding(folder: Path) -> None:
    lines = ptxlint("check", "stray.ptx").stdout.splitlines()
    assert lines[:3] == [
        "stray.ptx:11:5: warning[NUM407] 1 f64 operation in a kernel whose memory holds no f64",
        "   11 |     mul.f64 %rd3, %rd2, %rd2;",
        "      |     ^",
    ]
    assert any(line.startswith("1 warning in 1 kernel of 1 file (") for line in lines[-2:])


def test_standard_input(folder: Path) -> None:
    done = ptxlint("check", "-", input=STRAY.encode())
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:11:5: warning[NUM407]")
    assert "   11 |     mul.f64 %rd3, %rd2, %rd2;" in done.stdout


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github"])
def test_formats_and_output_file(folder: Path, format_: str, jobs: str) -> None:
    shown = ptxlint("check", ".", "--format", format_, "--jobs", jobs)
    done = ptxlint("check", ".", "--format", format_, "--jobs", jobs, "--output", "report")
    assert (shown.returncode, done.returncode) == (1, 1)
    assert done.stdout == ""
    text = (folder / "report").read_text()
    assert "NUM407" in text
    if format_ in ("json", "sarif"):
        assert json.loads(shown.stdout)
        assert json.loads(text)


def test_output_that_cannot_be_written(folder: Path) -> None:
    done = ptxlint("check", "stray.ptx", "--output", "no/such/folder")
    assert done.returncode == 2
    assert "cannot write no/such/folder" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ptxlint", "check", "stray.ptx"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr


def test_statistics(folder: Path) -> None:
    text = ptxlint("check", ".", "--statistics").stdout
    assert "       1  NUM407   warning  stray-f64" in text
    assert "  parse" in text
    assert "  rule NUM407" in text


def test_settings_file_and_options(folder: Path) -> None:
    settings = folder / "pyproject.toml"
    settings.write_text('[tool.ptxlint]\nignore = ["NUM407"]\nformat = "json"\n')
    done = ptxlint("check", "stray.ptx")
    assert done.returncode == 0
    assert json.loads(done.stdout)["summary"]["warnings"] == 0
    assert ptxlint("check", "stray.ptx", "--no-config").returncode == 1
    done = ptxlint("check", "stray.ptx", "--ignore", "RES103", "--format", "text")
    assert done.returncode == 1
    assert done.stdout.startswith("stray.ptx:11:5: ")


def test_settings_faults_name_the_line(folder: Path) -> None:
    settings = folder / "pyproject.toml"
    settings.write_text('[tool.ptxlint]\n\nignroe = ["NUM407"]\n')
    done = ptxlint("check", "stray.ptx")
    assert done.returncode == 2
    assert "pyproject.toml:3: unknown key 'ignroe'" in done.stderr
    assert "did you mean 'ignore'" in done.stderr
    settings.write_text('[tool.ptxlint]\n\n\nignore = ["NUM470"]\n')
    done = ptxlint("check", "stray.ptx")
    assert done.returncode == 2
    assert "pyproject.toml:4: no rule matches 'NUM470'" in done.stderr


def test_per_path_ignores_are_relative_to_the_settings(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "k.ptx").write_text(STRAY)
    settings = '[tool.ptxlint]\n[tool.ptxlint.per-path-ignores]\n"sub/*" = ["NUM407"]\n'
    (folder / "pyproject.toml").write_text(settings)
    assert ptxlint("check", "sub").returncode == 0
    assert ptxlint("check", folder / "sub" / "k.ptx").returncode == 0
    assert ptxlint("check", "stray.ptx").returncode == 1


def test_a_mistyped_selector_gets_a_suggestion(folder: Path) -> None:
    done = ptxlint("check", "stray.ptx", "--select", "stray-f46")
    assert done.returncode == 2
    assert done.stderr == "Error: no rule matches 'stray-f46'; did you mean stray-f64 (NUM407)?\n"


def test_a_triton_cache_is_walked(folder: Path) -> None:
    entry = folder / "cache" / "ABCDEF"
    entry.mkdir(parents=True)
    (entry / "kernel.ptx").write_text(STRAY)
    (entry / "kernel.json").write_text(json.dumps({"name": "stray", "num_warps": 4, "shared": 0}))
    (entry / "__grp__kernel.json").write_text("{}")
    (entry / "kernel.cubin").write_bytes(b"\x7fELF")
    done = ptxlint("check", "cache", "--format", "json")
    kernel = json.loads(done.stdout)["kernels"][0]
    assert kernel["metadata"] == {"num_warps": 4, "shared": 0}
    assert kernel["registers"] == {"b32": 2, "b64": 4}


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["check"], ["rule"], ["rules"], ["show"]])
def test_help(command: list[str], option: str) -> None:
    done = ptxlint(*command, option)
    assert done.returncode == 0
    assert "Usage: ptxlint" in done.stdout


def test_version_and_wrong_command() -> None:
    assert ptxlint("--version").stdout.startswith("ptxlint 0.")
    done = ptxlint("chekc", "x")
    assert done.returncode == 2
    assert "did you mean 'check'?" in done.stderr


def test_rules_are_listed_and_explained() -> None:
    listed = [line.split()[0] for line in ptxlint("rules").stdout.splitlines()]
    assert listed == sorted(listed)
    assert {"INPUT", "INTERNAL", "NUM407", "PARSE", "RES103", "SUP001", "SUP002"} <= set(listed)
    data = json.loads(ptxlint("rules", "--format", "json").stdout)
    assert [rule["id"] for rule in data] == listed
    text = ptxlint("rule", "num407").stdout
    for words in ("NUM407 stray-f64", "Why:", "Fix:", "Reported: eps arrives as f64", "Fine: "):
        assert words in text
    rule = json.loads(ptxlint("rule", "stray-f64", "--format", "json").stdout)
    assert rule["id"] == "NUM407"
    assert rule["bad"][0]["code"]
    assert ptxlint("rule", "SUP001").returncode == 0
    done = ptxlint("rule", "NUM470")
    assert done.returncode == 2
    assert "did you mean NUM4" in done.stderr
    assert ptxlint("rule").stdout.count("Why:") == len(listed)


def test_samples_of_several_pieces_are_printed_alike() -> None:
    """They are put together with a start that is indented in its own way."""
    printed = ptxlint("rule", "MSK203").stdout
    code = [line for line in printed.split("Reported:")[1].splitlines() if line.endswith(";")]
    assert len(code) > 30
    assert all(line.startswith("    ") and line[4] != " " for line in code)


@pytest.fixture
def broken(folder: Path) -> dict[str, str]:
    """An environment with a plugin whose rule does not load."""
    (folder / "house_rules.py").write_text("\nraise ValueError('no such field')\n")
    info = folder / "house_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ptxlint.rules]\nhouse = house_rules\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["rules"],
        ["rules", "--format", "json"],
        ["rule", "NUM407"],
        ["rule", "HSE101"],
        ["check", "clean.ptx", "--select", "HSE101"],
    ],
)
def test_a_rule_that_does_not_load_is_told(broken: dict[str, str], arguments: list[str]) -> None:
    done = ptxlint(*arguments, **broken)
    assert done.returncode == 2
    first = done.stderr.splitlines()[0]
    assert first.startswith("Error: house_rules.py:2: cannot load the rules of house_rules")
    assert first.endswith("no such field")
    assert ("no rule" in done.stderr) == ("HSE101" in arguments)


def test_check_points_at_the_rule_that_does_not_load(broken: dict[str, str]) -> None:
    done = ptxlint("check", "clean.ptx", **broken)
    assert done.returncode == 2
    assert done.stdout.startswith("house_rules.py:2:1: error[INTERNAL] cannot load")


def test_show_ir_prints_ptx_that_checks_alike(folder: Path) -> None:
    done = ptxlint("show", "ir", "stray.ptx")
    assert done.returncode == 0
    again = ptxlint("check", "-", input=done.stdout.encode())
    assert "warning[NUM407]" in again.stdout
    assert ptxlint("show", "ir", "stray.ptx", "stray").stdout.startswith(".visible .entry stray")


def test_show_cfg() -> None:
    text = ptxlint("show", "cfg", FIXTURE).stdout
    assert "entry flash_bwd_dkdv_kernel: 4 blocks, 1 loops" in text
    assert "(back)" in text
    assert "immediate dominator B0" in text
    dot = ptxlint("show", "cfg", FIXTURE, "--format", "dot").stdout
    assert dot.startswith("digraph cfg {")
    assert dot.count("->") == text.count("if %") + text.count("if !%") + 2


def test_show_cfg_as_svg(tmp_path: Path) -> None:
    out = tmp_path / "cfg.svg"
    done = ptxlint(
        "show", "cfg", FIXTURE, "flash_bwd_dkdv_kernel", "--format", "svg", "--output", out
    )
    assert done.returncode == 0
    root = ElementTree.parse(out).getroot()
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        tuple(float(r.get(key, "0")) for key in ("x", "y", "width", "height"))
        for r in root.iter(f"{space}rect")
        if r.get("x")
    ]
    assert len(boxes) == 5
    for i, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[i + 1 :]:
            apart = x + width <= other_x or other_x + other_width <= x
            assert apart or y + height <= other_y or other_y + other_height <= y


def test_show_facts_beside_the_ptx(folder: Path) -> None:
    text = ptxlint("show", "facts", FIXTURE).stdout
    assert "peak " in text
    assert "loop depth 1" in text
    assert " ? " in text
    parts = [line.partition("//")[0] for line in text.splitlines()]
    rows = [part.split() for part in parts if "mov.u32 %" in part]
    levels = {row[-1].rstrip(";"): row[2] for row in rows}
    assert (levels["%tid.x"], levels["%ctaid.x"]) == ("thread", "cta")


def test_show_facts_of_a_line(folder: Path) -> None:
    path = FIXTURE.with_name("softmax_buggy.ptx")
    whole = ptxlint("show", "facts", path).stdout
    load = ptxlint("show", "facts", path, "--kernel", "softmax_kernel", "--line", "15")
    assert load.returncode == 0
    assert load.stdout.count("ld.global.b32 {") == whole.count("ld.global.b32 {") == 8
    assert "st.global" in whole
    assert "st.global" not in load.stdout
    assert "where 4*tid.x < n_cols" in load.stdout
    assert "%r1 = 0 without m1" in load.stdout
    assert "error[MSK201] padding lanes hold 0.0" in load.stdout
    both = ptxlint("show", "facts", path, "--line", "15-16").stdout
    assert "max.f32" in both
    assert "max in f32 of 8 values a thread, over lane bits 0, 1, 2, 3, 4 and warps" in both


def test_show_facts_as_json(folder: Path) -> None:
    path = FIXTURE.with_name("softmax_buggy.ptx")
    data = json.loads(ptxlint("show", "facts", path, "--format", "json", "--line", "15").stdout)
    assert data["version"] == 1
    (kernel,) = data["functions"]
    assert kernel["name"] == "softmax_kernel"
    assert kernel["parameters"]["softmax_kernel_param_4"] == "n_cols"
    assert kernel["masks"]["m1"] == "4*tid.x < n_cols"
    assert {i["source"]["line"] for i in kernel["instructions"]} == {15}
    load = next(i for i in kernel["instructions"] if "ld.global" in i["text"])
    facts = {fact["kind"]: fact for fact in load["facts"]}
    assert facts["access"]["base"] == "x_ptr"
    assert facts["access"]["offset"] == "4*ctaid.x*stride_x + 16*tid.x"
    assert facts["access"]["guard"] == "4*tid.x < n_cols"
    assert facts["padding"]["masks"] == ["m1"]
    assert facts["padding"]["value"] == "0"
    assert (facts["verdict"]["rule"], facts["verdict"]["status"]) == ("MSK201", "refuted")
    assert facts["finding"]["severity"] == "error"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["facts", "stray.ptx", "--line", "900"], "no instruction stems from line 900"),
        (["facts", "stray.ptx", "--line", "5-4"], "give a line such as 10"),
        (["facts", "stray.ptx", "--line", "x"], "give a line such as 10"),
        (["cfg", "stray.ptx", "--line", "1"], "--line is for `show facts` only"),
        (["cfg", "stray.ptx", "--launch", "l.json"], "--launch is for `show facts` only"),
        (["facts", "stray.ptx", "--launch", "gone.json"], "gone.json"),
        (["facts", "stray.ptx", "--launch", str(LAUNCH)], "launch of stray"),
        (["cfg", "stray.ptx", "--format", "json"], "is for `show facts` and `show pressure` only"),
        (["facts", "stray.ptx", "stray", "--kernel", "other"], "two kernels are named"),
        (["facts", "stray.ptx", "--kernel", "strya"], "did you mean stray?"),
        (["cfg", "gone.ptx"], "no such file"),
        (["cfg", "stray.ptx", "strya"], "did you mean stray?"),
        (["ir", "stray.ptx", "--format", "dot"], "is for `show cfg` only"),
        (["nothing", "stray.ptx"], "'nothing' is not one of"),
        (["ir", "."], "stands for 2 files"),
    ],
)
def test_show_refuses(folder: Path, arguments: list[str], words: str) -> None:
    done = ptxlint("show", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_reader_that_goes_away(folder: Path) -> None:
    many = "".join(
        STRAY.split("64\n", 1)[1].replace("entry stray", f"entry k{n}") for n in range(3000)
    )
    (folder / "many.ptx").write_text(STRAY + many)
    process = subprocess.Popen(
        [sys.executable, "-m", "ptxlint", "check", "many.ptx"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=120) == 141
    assert errors == b""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_control_c(folder: Path, jobs: str) -> None:
    for number in range(400):
        (folder / f"{number}.ptx").write_bytes(FIXTURE.read_bytes())
    process = subprocess.Popen(
        [sys.executable, "-m", "ptxlint", "check", ".", "--jobs", jobs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(1.5)
    assert process.poll() is None, "the run was over before it could be interrupted"
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in errors


def _on_a_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    """What a command prints when its standard output is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ptxlint", *arguments],
        stdout=slave,
        stderr=slave,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", **environment},
        cwd=folder,
    )
    os.close(slave)
    parts = []
    try:
        while data := os.read(master, 65536):
            parts.append(data)
    except OSError:
        pass
    process.wait(timeout=120)
    os.close(master)
    return b"".join(parts).decode()


def test_colours_on_a_terminal_only(folder: Path) -> None:
    assert "\x1b[" not in ptxlint("check", "stray.ptx").stdout
    assert "\x1b[1;33mwarning[NUM407]" in _on_a_terminal(folder, "check", "stray.ptx")
    assert "\x1b[" not in _on_a_terminal(folder, "check", "stray.ptx", NO_COLOR="1")
    assert "\x1b[" not in _on_a_terminal(folder, "check", "stray.ptx", TERM="dumb")


def test_progress_on_a_terminal_with_many_files(folder: Path) -> None:
    assert "/2" not in _on_a_terminal(folder, "check", ".")
    for number in range(20):
        (folder / f"{number}.ptx").write_text(CLEAN)
    assert "] 22/22" in _on_a_terminal(folder, "check", ".")


HEAVY = ("torch", "triton", "numpy", "networkx", "lark", "rich", "asyncio", "importlib.metadata")


def test_check_loads_nothing_heavy(folder: Path) -> None:
    code = (
        "import sys\n"
        "from ptxlint.cli import main\n"
        f"try:\n    main(['check', {str(SMALL)!r}])\n"
        "except SystemExit as e:\n    print(e.code)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


def test_import_loads_nothing() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport ptxlint\n"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith('ptxlint')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['ptxlint']"


def test_a_fault_of_the_program_is_one_line(folder: Path) -> None:
    code = (
        "import ptxlint.engine.api as api\n"
        "def check(*a, **k): raise KeyError('lost')\n"
        "api.check = check\n"
        "from ptxlint.cli import main\nmain(['check', 'stray.ptx'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "internal error: KeyError: 'lost', raised at " in done.stderr


def test_facts_under_a_launch(folder: Path) -> None:
    done = ptxlint("show", "facts", LAUNCHED, "--launch", LAUNCH, "--format", "json")
    assert done.returncode == 0
    (function,) = json.loads(done.stdout)["functions"]
    assert function["launch"].endswith("n_cols = 781")
    known = [fact for instr in function["instructions"] for fact in instr["facts"]]
    # The stride is a number, the guard of the upper half has its bound, the lower half none.
    assert "%rd10 = 1024*ctaid.x" in [fact["text"] for fact in known]
    guards = {
        fact["guard"] for fact in known if fact["kind"] == "access" and fact["base"] == "x_ptr"
    }
    assert {"", "tid.x <= 67"} <= guards
    words = [fact["text"] for fact in known if fact["kind"] == "launch"]
    assert len(words) == 16
    assert "proved: within bytes 0 to 7,464,947 of x_ptr, which has 7,466,036" in words
    plain = json.loads(ptxlint("show", "facts", LAUNCHED, "--format", "json").stdout)
    assert plain["functions"][0]["launch"] is None


def test_facts_of_what_a_launch_refutes(folder: Path) -> None:
    given = json.loads(LAUNCH.read_text(encoding="utf-8"))
    given["launches"][0]["arguments"]["out_ptr"] = "float32[1823, 780]"
    given["launches"] *= 2
    (folder / "short.json").write_text(json.dumps(given), encoding="utf-8")
    done = ptxlint("show", "facts", LAUNCHED, "--launch", "short.json")
    assert "launch 1 of 2: short.json:" in done.stdout
    assert "refuted: program (1821, 0, 0), thread (0, 0, 0) writes out_ptr" in done.stdout
    assert "beyond its end" in done.stdout
