# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Packages as dpkg and rpm list them, their origin, locks, owners and sources. The texts are the tools' own."""
from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts import library, packages_deb, packages_rpm
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.node import Ran
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.origins import origin
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.survey import read_driver
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_packages import in_driver_set
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import LIB_RM_VERSION_MISMATCH, NvmlError
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding

from tests.unit.driver_facts.fake_node import FakeNode, node

DPKG = "\n".join([
    "ii \tcurl\t7.88.1-10+deb12u14\tamd64\tAlessandro Ghedini <ghedo@debian.org>",
    "ii \tlibnvidia-ml1\t595.91.07-1\tamd64\tNVIDIA CORPORATION <cudatools@nvidia.com>",
    "hi \tnvidia-driver-cuda\t595.91.07-1\tamd64\tNVIDIA CORPORATION <cudatools@nvidia.com>",
    "iF \tnvidia-kernel-open-dkms\t595.91.07-1\tamd64\tNVIDIA CORPORATION <cudatools@nvidia.com>",
    "rc \tnvidia-smi\t535.247.01-1\tamd64\tDebian NVIDIA Maintainers <pkg-nvidia-devel@lists.alioth.debian.org>",
    "un \tnvidia-kernel-dkms\t\t\t",
    "iHR\tmake\t4.3\tamd64\tx",
    "it \tman-db\t2.11\tamd64\tx",
    "hi \thtop\t3.2\tamd64\tx",
]) + "\n"


def apt_set(name: str) -> bool:
    return in_driver_set(name, "apt")


def test_packages_of_dpkg() -> None:
    packages, held, broken = packages_deb.parse(DPKG, apt_set)
    assert [package["name"] for package in packages] == ["libnvidia-ml1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms"]
    assert packages[0] == {
        "name": "libnvidia-ml1", "version": "595.91.07", "full": "595.91.07-1", "arch": "amd64", "origin": "nvidia",
        "source": "Maintainer: NVIDIA CORPORATION <cudatools@nvidia.com>",
    }
    assert held == ["nvidia-driver-cuda"]
    assert broken == ["make", "man-db", "nvidia-kernel-open-dkms"]


def test_lines_that_are_none_of_dpkgs_or_rpms_are_passed_over() -> None:
    odd = "ii \tlibnvidia-ml1\t595.91.07-1\tamd64\tA\x85B\u2028C <x@nvidia.com>\n cut off\n"
    assert [package["origin"] for package in packages_deb.parse(odd, apt_set)[0]] == ["nvidia"]
    odd = "nvidia-driver-cuda\t3\t595.91.07-1.el9\tx86_64\tA\x1cB\t(none)\t(none)\nbash\t(none)\t5-1\tx86_64\tA vendor\nof two lines\tx\tx\n"
    assert [package["name"] for package in packages_rpm.parse(odd, lambda name: in_driver_set(name, "dnf"))] == ["nvidia-driver-cuda"]


def test_a_dpkg_that_fails_is_an_error(tmp_path: Path) -> None:
    host = node(tmp_path)
    host.answers["dpkg-query -W"] = Ran(2, "", "dpkg-query: error: failed to open package info file")
    with pytest.raises(FleetError) as failed:
        packages_deb.read(host, apt_set)
    assert failed.value.finding.code == "DriverCommandFailed"


@pytest.mark.parametrize(("said", "expected"), [
    ("NVIDIA CORPORATION <cudatools@nvidia.com>", "nvidia"), ("Debian NVIDIA Maintainers <pkg-nvidia-devel@lists.alioth.debian.org>", "distribution"),
    ("Ubuntu Core Developers <ubuntu-devel-discuss@lists.ubuntu.com>", "distribution"), ("Me <me@example.com>", "unknown"), ("", "unknown"),
    ("Vendor: SUSE LLC <https://www.suse.com/>", "distribution"), ("Signature: RSA/SHA512, Mon 01 Jun 2026, Key ID 9cd0a493d42d0685", "nvidia"),
    ("Signature: RSA/SHA512, Mon 01 Jun 2026, Key Fingerprint: 610c7b14e068a878070da4e99cd0a493d42d0685", "nvidia"),
    ("Signature: RSA/SHA512, Mon 01 Jun 2026, Key Fingerprint 702d426d350d275d702d426d350d275d702d426d", "unknown"),
    ("Vendor: Rocky Enterprise Software Foundation, Signature: RSA/SHA256, Key ID 702d426d350d275d", "distribution"), ("Vendor: nvidia fans", "unknown"),
])
def test_who_made_a_package(said: str, expected: str) -> None:
    assert origin(said) == expected


def test_owners_by_dpkg_under_both_spellings(tmp_path: Path) -> None:
    host = node(tmp_path)
    host.answers["dpkg-query -S"] = Ran(1, "libnvidia-ml1:amd64, other: /lib/x.so\nb: /usr/bin/b\n", "dpkg-query: no path found matching pattern /usr/bin/c")
    assert packages_deb.owners(host, ["/usr/lib/x.so", "/usr/bin/b", "/usr/bin/c"]) == {"/usr/lib/x.so": "libnvidia-ml1", "/usr/bin/b": "b", "/usr/bin/c": None}


def test_sources_of_apt(tmp_path: Path) -> None:
    host = node(tmp_path, {
        "/etc/apt/sources.list": "# deb http://off/ x main\ndeb [arch=amd64 signed-by=/k] http://a/debian bookworm main\ndeb-src http://b/ x main\n",
        "/etc/apt/sources.list.d/c.sources": (
            "Types: deb\nURIs: http://c/1 http://c/2\nSuites: x\n\nEnabled: no\nTypes: deb\nURIs: http://off\n\nTypes: deb\nURIs:\n http://c/3\n"
        ),
        "/etc/apt/sources.list.d/d.list.save": "deb http://off/ x main\n",
    })
    one, two = "/etc/apt/sources.list", "/etc/apt/sources.list.d/c.sources"
    assert packages_deb.sources(host) == [(one, "http://a/debian"), (one, "http://b/"), (two, "http://c/1"), (two, "http://c/2"), (two, "http://c/3")]


RPM = "\n".join([
    "nvidia-driver-cuda\t3\t595.91.07-1.el9\tx86_64\tNVIDIA Corporation\t(none)\tRSA/SHA512, Mon 01 Jun 2026 10:00:00 AM UTC, Key ID 9cd0a493d42d0685",
    "kmod-nvidia-open-dkms\t(none)\t595.91.07-1.el9\tnoarch\t(none)\t(none)\t(none)", "bash\t(none)\t5.1-9.el9\tx86_64\tx\tx\tx",
]) + "\n"


def test_packages_of_rpm() -> None:
    packages = packages_rpm.parse(RPM, lambda name: in_driver_set(name, "dnf"))
    assert [(package["name"], package["version"], package["full"], package["origin"]) for package in packages] == [
        ("kmod-nvidia-open-dkms", "595.91.07", "595.91.07-1.el9", "unknown"), ("nvidia-driver-cuda", "595.91.07", "3:595.91.07-1.el9", "nvidia"),
    ]
    assert packages[0]["source"] == "no vendor"


def installed(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "full": "3:595.91.07-1.el9", "arch": "x86_64"} for name in names]


@pytest.mark.parametrize(("spec", "locked"), [
    ("nvidia-driver-cuda-3:595.91.07-1.el9.*", "nvidia-driver-cuda"), ("nvidia-driver-3:580.1.1-1.el9.*", "nvidia-driver"),
    ("nvidia-driver-*-580.173.02-*.*", "nvidia-driver-cuda"), ("nvidia-driver-595.91.07", "nvidia-driver"),
    ("*nvidia*595*", "nvidia-driver nvidia-driver-cuda"),
    ("*nvidia*580*", ""), ("nvidia-driver", "nvidia-driver"), ("nvidia-driver.x86_64", "nvidia-driver"), ("kernel-0:5.14.0-70.el9.*", ""),
    ("nvidia-driver-[0-9]*-595.91.07-*.*", ""), ("!nvidia-driver-3:620.1-1.el9.*", ""), ("# nvidia-driver", ""),
])
def test_locks_of_dnf(tmp_path: Path, spec: str, locked: str) -> None:
    host = node(tmp_path, {packages_rpm.VERSIONLOCK: f"# Added lock on Mon\n\n{spec}\n"})
    assert packages_rpm.held(host, "dnf", installed("nvidia-driver", "nvidia-driver-cuda")) == locked.split()


def test_locks_of_zypper(tmp_path: Path) -> None:
    text = "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: nvidia-compute-G0*\n\nsolvable_name: curl\n"
    host = node(tmp_path, {packages_rpm.ZYPP_LOCKS: text})
    assert packages_rpm.held(host, "zypper", installed("nvidia-compute-G06", "nvidia-persistenced")) == ["nvidia-compute-G06"]
    assert packages_rpm.held(node(tmp_path / "none"), "zypper", installed("nvidia-compute-G06")) == []


@pytest.mark.parametrize(("text", "expected"), [
    ("[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nprofiles=\nstate=enabled\n", "580-open"),
    ("[nvidia-driver]\nstream=580-open\nstate=disabled\n", None),
    ("[nvidia-driver]\nstream=\nstate=enabled\n", None), ("no ini", None), ("", None),
])
def test_the_stream(tmp_path: Path, text: str, expected: str | None) -> None:
    assert packages_rpm.read_stream(node(tmp_path, {"/etc/dnf/modules.d/nvidia-driver.module": text})) == expected


def test_sources_of_rpm_hosts(tmp_path: Path) -> None:
    text = "[a]\nbaseurl=http://a/1\n  http://a/2\nenabled=1\n[b]\nbaseurl=http://b\nenabled=0\n[c]\nmirrorlist=http://c/$releasever\n"
    host = node(tmp_path, {"/etc/yum.repos.d/x.repo": text, "/etc/zypp/repos.d/y.repo": "no ini", "/etc/yum.repos.d/z.txt": text})
    assert packages_rpm.sources(host, "dnf") == [("/etc/yum.repos.d/x.repo", address) for address in ("http://a/1", "http://a/2", "http://c/$releasever")]
    assert packages_rpm.sources(host, "zypper") == [] == packages_rpm.sources(host, "")


def test_owners_by_rpm(tmp_path: Path) -> None:
    host = node(tmp_path)
    host.answers.update({"rpm -qf --queryformat=%{NAME} /a": "bash", "rpm -qf": Ran(1, "file /b is not owned by any package", "")})
    assert packages_rpm.owners(host, ["/a", "/b"]) == {"/a": "bash", "/b": None}


def whole(tmp_path: Path, system: str, answers: dict[str, str | Ran]) -> FakeNode:
    host = node(tmp_path, {
        "/etc/os-release": system, "/usr/lib64/libnvidia-ml.so.595.91.07": "", "/usr/bin/nvidia-uninstall": "",
        "/var/lib/gpufleet-dra/nvidia_driver.json": '{"format": 1, "version": "595.91.07"}', "/proc/1/comm": "init",
    })
    (tmp_path / "usr/lib64/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.595.91.07")
    host.answers.update(answers)
    return host


def test_the_facts_of_a_debian_host(tmp_path: Path) -> None:
    root = tmp_path / "root"
    owner = "libnvidia-ml1: /usr/lib64/libnvidia-ml.so.595.91.07\n"
    host = whole(root, 'ID=debian\nVERSION_ID="12"', {"apt-get": "", "dpkg-query -W": DPKG, "dpkg-query -S": owner})
    facts = read_driver(host, str(root))
    assert facts["nvml"]["error"]["reason"] == "NvmlDriverNotLoaded", "without a loaded module NVML is not called: it would load it"
    assert facts["held"] == ["nvidia-driver-cuda"] and facts["record"] == {"format": 1, "version": "595.91.07"}
    assert facts["traces"]["runfile"] == ["/usr/bin/nvidia-uninstall"]
    assert set(facts["files"].values()) == {None} and "/etc/apt/preferences.d/00-gpufleet-nvidia-driver" in facts["files"]
    assert facts == read_driver(host, str(root))
    own = root / "etc/apt/sources.list.d/gpufleet-nvidia-driver.sources"
    own.parent.mkdir(parents=True)
    own.write_text("URIs: https://me:s3cret@mirror/\n")
    assert "s3cret" not in str(read_driver(host, str(root))), "-v shows these facts"


@pytest.mark.parametrize("system", ["ID=rocky", "ID=sles", "ID=azurelinux"])
def test_the_facts_of_rpm_hosts(tmp_path: Path, system: str) -> None:
    manager = {"rocky": "dnf", "sles": "zypper", "azurelinux": "tdnf"}[system.removeprefix("ID=")]
    facts = read_driver(whole(tmp_path, system, {manager: "", "rpm -qa": RPM, "rpm -qf": Ran(1, "", ""), "rpm -q": "d42d0685\n"}), "/nowhere")
    assert facts["host"]["package_manager"] == manager and facts["library"] is None and facts["files"]
    assert facts["traces"]["runfile"][0] == "/usr/bin/nvidia-uninstall" and facts["trusted_keys"] == ["d42d0685"]


def test_a_host_without_a_package_manager_is_read_all_the_same(tmp_path: Path) -> None:
    host = whole(tmp_path, "ID=slackware", {})
    (tmp_path / "var/lib/gpufleet-dra/nvidia_driver.json").write_text("{broken")
    facts = read_driver(host, "/nowhere")
    assert (facts["packages"], facts["held"], facts["files"], facts["record"]) == ([], [], {}, None)


def test_a_driver_that_hangs_ends_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_ask", lambda *_: Event().wait(5))
    monkeypatch.setattr(library, "_ANSWER_SECONDS", 0.1)
    error = library.read_nvml(node(tmp_path), "/", None, loaded=True)["error"]
    assert error == {"reason": "NvmlCallFailed", "cause": "nvmlInit failed: no answer in 0.1 s", "mismatch": False}


def test_an_odd_failure_of_the_binding_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Session:
        def __init__(self, *_: object) -> None:
            raise AttributeError("module 'pynvml' has no attribute 'nvmlInitWithFlags'")

    monkeypatch.setattr(library, "NvmlSession", Session)
    error = library.read_nvml(node(tmp_path), "/", None, loaded=True)["error"]
    assert error["reason"] == "NvmlCallFailed" and "AttributeError: module 'pynvml' has no attribute" in error["cause"] and "no answer" not in error["cause"]


def test_a_library_of_another_version_than_the_module_is_a_mismatch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Session:
        def __init__(self, *_: object) -> None:
            said = NvmlError(LIB_RM_VERSION_MISMATCH, "nvmlInitWithFlags")
            raise FleetError(finding("NvmlCallFailed", "node-1", call=said.call, error=said.name)) from said

    monkeypatch.setattr(library, "NvmlSession", Session)
    error = library.read_nvml(node(tmp_path), "/", None, loaded=True)["error"]
    assert error["mismatch"] and "LIB_RM_VERSION_MISMATCH" in error["cause"]
