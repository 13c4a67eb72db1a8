# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The drop-in file of each containerd: what it holds, what it leaves as it was, and what is refused."""
from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime import containerd as engine
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.document import SPEC_DIRS, Plan
from nodes import FakeNode, runtime

V17, V20, V22, V23 = (1, 7, 24), (2, 0, 5), (2, 2, 9), (2, 3, 7)
OLD, NEW = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"


class Host:
    """A node with one containerd and its configuration folder."""

    def __init__(self, folder: Path, version: tuple[int, int, int], name: str = "containerd") -> None:
        self.folder = folder
        self.conf_d = folder / "conf.d"
        self.conf_d.mkdir(parents=True)
        self.node = FakeNode(folder)
        self.runtime = runtime(folder, name, version)

    def main(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text.replace("DIR", str(self.folder)))

    def plan(self, wanted: tuple[str, ...] = SPEC_DIRS, present: bool = True) -> Plan:
        return engine.Containerd(self.node, "node-1", self.runtime).plan(wanted, present)

    def apply(self, plan: Plan) -> None:
        for file in plan.files:
            assert file.before == (Path(file.path).read_text() if Path(file.path).exists() else None)
            if file.content is None:
                Path(file.path).unlink()
            else:
                Path(file.path).write_text(file.content)


def off(version: int) -> str:
    section = OLD if version == 2 else NEW
    head = f"# of the site\nversion = {version}\nimports = ['DIR/conf.d/*.toml']\n"
    return f"{head}[plugins.'{section}']\n  enable_cdi = false\n  sandbox_image = \"own/pause:1\"\n"


@pytest.mark.parametrize(("version", "dialect"), [(V17, 2), (V20, 2), (V20, 3), (V22, 2), (V22, 3), (V23, 2), (V23, 3), (V23, 4)])
def test_the_drop_in_turns_cdi_on_in_the_dialect_of_the_main_file_and_leaves_the_rest(tmp_path: Path, version: tuple[int, int, int], dialect: int) -> None:
    host = Host(tmp_path, version)
    host.main(off(dialect))
    plan = host.plan()
    assert not plan.effective.enabled and plan.findings == ()
    (file,) = plan.files
    assert file.path == str(host.conf_d / engine.DROP_IN) and file.before is None
    written = tomllib.loads(file.content or "")
    assert written["version"] == dialect
    section = written["plugins"][OLD if dialect == 2 else NEW]
    assert section["enable_cdi"] is True and section["cdi_spec_dirs"] == list(SPEC_DIRS)
    # only 1.7 takes a section as a whole; in 2 the drop-in does not freeze what is not its own
    assert section.get("sandbox_image") == ("own/pause:1" if version == V17 else None)
    host.apply(plan)
    assert host.plan().effective.enabled and host.plan().files == ()


def test_on_1_7_the_drop_in_follows_the_main_file(tmp_path: Path) -> None:
    host = Host(tmp_path, V17)
    host.main(off(2))
    host.apply(host.plan())
    host.main(off(2).replace("own/pause:1", "own/pause:2"))
    (file,) = host.plan().files
    assert tomllib.loads(file.content or "")["plugins"][OLD]["sandbox_image"] == "own/pause:2"
    host.apply(host.plan())
    assert host.plan().files == ()


@pytest.mark.parametrize("version", [V20, V22, V23])
def test_containerd_2_has_cdi_on_and_needs_nothing(tmp_path: Path, version: tuple[int, int, int]) -> None:
    host = Host(tmp_path, version)
    assert host.plan().files == () and host.plan().effective.serves(SPEC_DIRS)
    host.main("version = 2\n")
    assert host.plan().files == ()


def test_folders_of_the_site_stay_and_var_run_is_run(tmp_path: Path) -> None:
    host = Host(tmp_path, V22)
    host.main(f"version = 3\nimports = ['DIR/conf.d/*.toml']\n[plugins.'{NEW}']\ncdi_spec_dirs = ['/run/cdi', '/opt/cdi']\n")
    (file,) = host.plan().files
    assert tomllib.loads(file.content or "")["plugins"][NEW]["cdi_spec_dirs"] == ["/run/cdi", "/opt/cdi", "/etc/cdi"]
    host.apply(host.plan())
    assert host.plan().files == ()


def test_without_a_main_file_a_small_one_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, V17)
    monkeypatch.setattr(engine, "DEFAULT_FOLDER", str(host.conf_d))
    plan = host.plan()
    drop_in, main = plan.files
    assert drop_in.path == str(host.conf_d / engine.DROP_IN) and main.path == str(tmp_path / "config.toml")
    assert tomllib.loads(main.content or "") == {"version": 2, "imports": [f"{host.conf_d}/*.toml"]}
    host.apply(plan)
    assert host.plan().files == () and host.plan().effective.enabled
    gone = host.plan(present=False)
    assert [file.content for file in gone.files] == [None, None] and not gone.effective.enabled
    host.apply(gone)
    assert not (tmp_path / "config.toml").exists() and host.plan(present=False).files == ()


def test_a_main_file_that_others_use_now_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, V17)
    monkeypatch.setattr(engine, "DEFAULT_FOLDER", str(host.conf_d))
    host.apply(host.plan())
    (host.conf_d / "50-site.toml").write_text("version = 2\n")
    assert [file.path for file in host.plan(present=False).files] == [str(host.conf_d / engine.DROP_IN)]


def test_removal_is_of_the_own_file_only(tmp_path: Path) -> None:
    host = Host(tmp_path, V22)
    host.main(off(3))
    assert host.plan(present=False).files == ()
    host.apply(host.plan())
    plan = host.plan(present=False)
    assert [(file.path, file.content) for file in plan.files] == [(str(host.conf_d / engine.DROP_IN), None)] and not plan.effective.enabled


@pytest.mark.parametrize("imports", ["", "imports = []\n", "imports = ['DIR/one.toml']\n"])
def test_a_main_file_without_a_folder_names_the_line_to_add(tmp_path: Path, imports: str) -> None:
    host = Host(tmp_path, V17)
    (tmp_path / "one.toml").write_text("version = 2\n")
    host.main(f"version = 2\n{imports}")
    plan = host.plan()
    assert [found.code for found in plan.findings] == ["CdiImportMissing"] and plan.files == ()
    assert 'imports = ["/etc/containerd/conf.d/*.toml"]' in plan.findings[0].remedy


def test_the_folder_of_the_site_is_taken_whatever_its_name(tmp_path: Path) -> None:
    host = Host(tmp_path, V22)
    (tmp_path / "site.d").mkdir()
    host.main(off(3).replace("DIR/conf.d/*.toml", "site.d/*.toml"))
    assert [file.path for file in host.plan().files] == [str(tmp_path / "site.d" / engine.DROP_IN)]


@pytest.mark.parametrize("main", ["disabled_plugins = ['cri']\n", f"version = 2\ndisabled_plugins = ['{OLD}']\n"])
@pytest.mark.parametrize("version", [V17, V22])
def test_a_containerd_without_cri_is_refused(tmp_path: Path, version: tuple[int, int, int], main: str) -> None:
    host = Host(tmp_path, version)
    host.main(main)
    assert [found.code for found in host.plan().findings] == ["CdiCriDisabled"]


def test_configuration_version_1_is_refused(tmp_path: Path) -> None:
    host = Host(tmp_path, V17)
    host.main("imports = ['DIR/conf.d/*.toml']\n")
    assert [found.code for found in host.plan().findings] == ["CdiConfigTooOld"]


def test_a_later_file_that_sets_it_otherwise_is_named(tmp_path: Path) -> None:
    host = Host(tmp_path, V22)
    (tmp_path / "last.toml").write_text(f"version = 3\n[plugins.'{NEW}']\nenable_cdi = false\n")
    host.main("version = 3\nimports = ['DIR/conf.d/*.toml', 'DIR/last.toml']\n")
    plan = host.plan()
    assert [found.code for found in plan.findings] == ["CdiNotEffective"] and "last.toml" in plan.findings[0].cause and plan.files == ()


def test_a_drop_in_that_would_change_more_than_cdi_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, V22)
    host.main(off(2))
    monkeypatch.setattr(engine.Containerd, "_drop_in", lambda self, without, cdi: f"version = 3\n[plugins.'{NEW}']\nenable_cdi = true\n")
    plan = host.plan()
    # a drop-in of version 3 makes this containerd lose the section of a main file of version 2
    assert [found.code for found in plan.findings] == ["CdiDropInConflict"] and "sandbox_image" in plan.findings[0].cause


def test_credentials_are_not_repeated(tmp_path: Path) -> None:
    secret = '[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]\n  username = "u"\n  password = "hush"\n'
    for version, codes in ((V17, ["CdiSectionHasSecrets"]), (V22, [])):
        host = Host(tmp_path / str(version[0]), version)
        host.main(off(2) + secret)
        plan = host.plan()
        assert [found.code for found in plan.findings] == codes and len(plan.files) == 1 - len(codes)
        assert "hush" not in str(plan) and ("registry.configs.r.example.auth.password" in str(plan)) == bool(codes)


@pytest.mark.parametrize("text", ["version = 2\n[x", "version = 9\n", "version = 2\nimports = ['DIR/none.toml']\n"])
def test_a_broken_configuration_is_refused(tmp_path: Path, text: str) -> None:
    host = Host(tmp_path, V22)
    host.main(text)
    with pytest.raises(FleetError) as caught:
        host.plan()
    assert caught.value.finding.code == "CdiConfigBroken"


def test_a_broken_drop_in_of_another_is_refused(tmp_path: Path) -> None:
    host = Host(tmp_path, V22)
    host.main(off(3))
    (host.conf_d / "50-other.toml").write_text("[")
    with pytest.raises(FleetError) as caught:
        host.plan()
    assert caught.value.finding.code == "CdiConfigBroken" and "50-other.toml" in caught.value.finding.cause


def test_a_main_file_that_is_a_link_or_not_text(tmp_path: Path) -> None:
    host = Host(tmp_path, V22)
    (tmp_path / "real.toml").write_text(off(3).replace("DIR", str(tmp_path)))
    (tmp_path / "config.toml").symlink_to("real.toml")
    assert len(host.plan().files) == 1
    (tmp_path / "real.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FleetError) as caught:
        host.plan()
    assert caught.value.finding.code == "CdiConfigBroken"


def test_a_containerd_that_is_too_old(tmp_path: Path) -> None:
    with pytest.raises(FleetError) as caught:
        Host(tmp_path, (1, 6, 20)).plan()
    assert caught.value.finding.code == "CdiRuntimeTooOld"


class TestEmbedded:
    """k3s and RKE2 write the main file themselves, and import a folder for drop-in files in it."""

    def test_the_folder_that_it_imports_is_used(self, tmp_path: Path) -> None:
        host = Host(tmp_path, V22, "k3s")
        (tmp_path / "config-v3.toml.d").mkdir()
        host.main(off(3).replace("conf.d", "config-v3.toml.d"))
        assert [file.path for file in host.plan().files] == [str(tmp_path / "config-v3.toml.d" / engine.DROP_IN)]

    def test_one_that_imports_none_is_refused_with_the_line(self, tmp_path: Path) -> None:
        host = Host(tmp_path, V22, "rke2")
        host.main(off(3).replace("imports", "required_plugins"))
        plan = host.plan()
        assert [found.code for found in plan.findings] == ["CdiTemplateImportMissing"] and "config-v3.toml.d/*.toml" in plan.findings[0].remedy

    def test_one_with_containerd_1_7_is_refused(self, tmp_path: Path) -> None:
        host = Host(tmp_path, V17, "k3s")
        host.main(off(2))
        assert [found.code for found in host.plan().findings] == ["CdiRuntimeTooOld"]

    def test_one_that_never_ran_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(FleetError) as caught:
            Host(tmp_path, V22, "k3s").plan()
        assert caught.value.finding.code == "CdiConfigBroken"
