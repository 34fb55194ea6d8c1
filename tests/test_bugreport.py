"""Bug reports: nothing private is in them, and their script shows the fault."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import bugreport, dumps
from hlotext.bugreport.private import machine_words, shown_settings
from tests.cli_support import run
from tests.support import DATA

SECRETS = (
    "/home/ada/secret_project",
    "ada",
    "acme_attention",
    "layer_of_acme",
    "train_acme",
    "s3://acme",
    "hunter2",
    "1234.5",
)
TEXT = (DATA / "bugreport" / "private.hlo").read_text()
OPTIONS = """xla_gpu_enable_triton_gemm: false
xla_gpu_cuda_data_dir: "/home/ada/secret_project/cuda"
xla_disable_hlo_passes: "priority-fusion"
xla_gpu_kernel_cache_file: "s3://acme/cache"
xla_backend_optimization_level: 2
"""
HAS_DOT = ("sh", "-c", '! grep -q " dot(" {}')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "dump_of_ada"
    place.mkdir()
    (place / "module_0001.jit_train_acme.before_optimizations.txt").write_text(TEXT)
    (place / "module_0001.jit_train_acme.gpu_target_config.pbtxt").write_text('platform_name: "CUDA"\n')
    (place / "module_0001.jit_train_acme.debug_options").write_text(OPTIONS)
    return place


def execute(script: str, folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    place = folder / "report.sh"
    place.write_text(script)
    return subprocess.run(["sh", str(place)], cwd=folder, capture_output=True, check=False).returncode


def test_nothing_private_and_the_fault_is_shown(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.sh"
    result = run("bugreport", folder, "-o", target, "--yes", "--", *HAS_DOT)
    assert result.exit_code == 0, result.stderr
    script = target.read_text()
    for secret in (*SECRETS, str(tmp_path), *machine_words()):
        assert re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", script) is None, secret
    assert "reduce(" not in script
    assert "xla_backend_optimization_level  2" in script.replace("setting ", "")
    assert "priority-fusion" in script  # a pass of XLA's
    assert "--xla_backend_optimization_level=2'\nexport XLA_FLAGS" in script
    assert "xla_gpu_cuda_data_dir" in script
    assert execute(script, tmp_path / "elsewhere") == 1
    for line in script.splitlines()[2:8]:
        assert line.removeprefix("#").split()[-1] in result.stdout


def test_the_module_alone_without_a_command(folder: Path) -> None:
    (one,) = dumps.open(folder).compilations
    report = bugreport.make(one)
    assert not report.is_checked
    assert report.withheld == ("xla_gpu_cuda_data_dir", "xla_gpu_kernel_cache_file")
    assert [i.opcode for i in report.module.instructions()].count("dot") == 1
    assert "1234.5" not in report.script
    assert 'hlotext run "$work/module.txt"' in report.script


def test_what_does_not_fail_is_no_fault(folder: Path) -> None:
    result = run("bugreport", folder, "-o", folder / "x", "--yes", "--", "true")
    assert result.exit_code == 1
    assert "does not fail" in result.stderr
    assert not (folder / "x").exists()


def test_a_fault_that_needs_a_name_or_a_constant(folder: Path) -> None:
    (one,) = dumps.open(folder).compilations
    constant = ("sh", "-c", "! grep -q 1234.5 {}")
    with pytest.raises(bugreport.BugReportError, match="keep-constants"):
        bugreport.make(one, constant)
    assert "1234.5" in bugreport.make(one, constant, keep_constants=True).script
    with pytest.raises(bugreport.BugReportError, match="without the module's names"):
        bugreport.make(one, ("sh", "-c", "! grep -q acme {}"), keep_constants=True)


def test_integer_scalars_stay_where_the_fault_needs_them() -> None:
    lines = ("a = s32[] constant(77)", "b = s32[2] constant({5, 6})", "ROOT c = (s32[], s32[2]) tuple(a, b)")
    module = hlo.parse("\n".join(["ENTRY e {", *lines, "}", ""]))
    needs = bugreport.make(module, ("sh", "-c", "! grep -q 77 {}"))
    assert (
        "taken out",
        "names, metadata, sources, configurations, constants other than integer scalars, custom call targets",
    ) in needs.facts
    assert "5, 6" not in needs.script
    free = bugreport.make(module, ("sh", "-c", "! grep -q constant {}"))
    assert "77" not in str(free.module)


def test_a_file_of_the_command_must_be_included(folder: Path, tmp_path: Path) -> None:
    check = tmp_path / "check.sh"
    check.write_text("! grep -q ' dot(' \"$1\"\n")
    (one,) = dumps.open(folder).compilations
    with pytest.raises(bugreport.BugReportError, match=r"include check\.sh"):
        bugreport.make(one, ("sh", str(check)))
    report = bugreport.make(one, ("sh", str(check)), include=[check])
    assert execute(report.script, tmp_path / "elsewhere") == 1
    check.write_text("# by train_acme\n" + check.read_text())
    check.write_text("# of /home/ada/x.py\n" + check.read_text())
    with pytest.raises(bugreport.BugReportError) as caught:
        bugreport.make(one, ("sh", str(check)), include=[check])
    assert {leak.kind for leak in caught.value.leaks} == {"path"}


def test_the_user_of_this_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/grace")
    assert machine_words()["grace"] == "user name"
    monkeypatch.setenv("HOME", "/tmp/fresh/home")
    assert "home" not in machine_words()  # or every path below /home would tell who it was
    monkeypatch.setenv("HOME", "/home/grace")
    (one,) = dumps.open(folder).compilations
    with pytest.raises(bugreport.BugReportError, match="user name on line"):
        bugreport.make(one, ("sh", "-c", "! grep -q ' dot(' {} # grace"))


def test_settings_that_may_be_shown() -> None:
    shown, withheld = shown_settings(
        {
            "a": ("1", False),
            "b": ("true", False),
            "c": ("x/y", True),
            "d": ("STRATEGY_1", False),
            "e": ("algsimp,priority-fusion", True),
            "f": ("hunter2", False),
            "g": ("", True),
            "h;": ("1", False),
            "i": ("AKIAIOSFODNN7EXAMPLE", True),
            "j": ("4111111111111111", True),
            "k": ("5f4dcc3b5aa765d61d8327deb882cf99", False),
        }
    )
    assert shown == {"a": "1", "b": "true", "d": "STRATEGY_1", "e": "algsimp,priority-fusion"}
    assert withheld == ("c", "f", "g", "i", "j", "k")


def test_a_module_that_holds_the_end_mark(tmp_path: Path) -> None:
    check = tmp_path / "check.sh"
    check.write_text("cat > /dev/null <<'END'\nEND\n! grep -q add \"$1\"\n")
    module = hlo.parse("ENTRY e {\n  a = f32[] parameter(0)\n  ROOT b = f32[] add(a, a)\n}\n")
    report = bugreport.make(module, ("sh", str(check)), include=[check])
    assert execute(report.script, tmp_path / "elsewhere") == 1
    assert os.listdir(tmp_path / "elsewhere") == ["report.sh"]


SHARDED = """HloModule jit_f, num_partitions=2, frontend_attributes={xla.sdy.meshes={zebra = #sdy.mesh<["acme_dp"=2]>}}

xla.sdy.manual_computation_body {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), replica_groups=mesh['acme_dp'=2] {'acme_dp'}, to_apply=sum
}

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[4] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@zebra, [{\\"acme_dp\\"}]>",owner="ada"}
  b = f32[2] custom-call(a), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={MANUAL}
  c = f32[2] call(b), to_apply=xla.sdy.manual_computation_body, frontend_attributes={inlineable="false",_xla_acme="hunter2"}
  k = f32[2] custom-call(c), custom_call_target="acme_kernel", backend_config="hunter2"
  z = f32[200] constant({...})
  ROOT d = f32[4] custom-call(k), custom_call_target="xla.sdy.LocalToGlobalShape"
}
"""


MANUAL = 'xla.sdy.manual_axes="#sdy<manual_axes{\\"acme_dp\\"}>"'


def test_axes_targets_and_notes_of_several_devices() -> None:
    """Shardy's words stay, so that a fault of the partitioner does; names in them are numbers."""
    module = hlo.parse(SHARDED.replace("MANUAL", MANUAL))
    report = bugreport.make(module, ("sh", "-c", "! grep -q manual_axes {}"))
    for word in ("acme", "zebra", '"ada"', "hunter2"):
        assert word not in report.script
    assert '#sdy<manual_axes{\\"axis_0\\"}>' in report.script
    whole = bugreport.make(module)
    text = str(whole.module)
    assert 'xla.sdy.meshes={mesh = #sdy.mesh<["axis_0"=2]>}' in text
    assert '#sdy.sharding<@mesh, [{\\"axis_0\\"}]>' in text
    assert "mesh['axis_0'=2] {'axis_0'}" in text
    assert 'inlineable="false"' in text
    assert 'custom_call_target="target.0"' in text
    assert "{...}" not in text
    assert ("zeros", "1 constant elided in the dump") in whole.facts
    assert "acme" not in text
    needed = bugreport.make(module, ("sh", "-c", "! grep -q acme_kernel {}"))
    assert ("kept", "acme_kernel") in needed.facts


def test_another_exit_status_is_another_fault() -> None:
    """The smallest module of all fails with 3, and the fault is status 2."""
    check = "grep -q tanh {} && exit 2; grep -q sine {} && exit 0; exit 3"
    module = hlo.parse(
        "ENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] tanh(a)\n  ROOT c = f32[] sine(b)\n}\n"
    )
    report = bugreport.make(module, ("sh", "-c", check))
    assert "tanh" in str(report.module)
    assert ("exit status", "the command's: 2 while the failure reproduces") in report.facts
