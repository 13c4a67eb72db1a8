# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is read of host, kernels, PCI, firmware, services and traces."""
from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.host import read_host, read_reboot_hints
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.kernel import parse_loaded, parse_modinfo, read_kernels, read_loaded
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.node import Node, Ran
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.pci import read_pci
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.secure_boot import read_secure_boot
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.services import read_services
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.traces import read_traces
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.driver_facts.fake_node import FakeNode, node

ROCKY = 'NAME="Rocky Linux"\nVERSION="9.7 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.7"\nPRETTY_NAME="Rocky Linux 9.7"\n# x\nbad\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\nBROKEN="\n'
OPEN_MODINFO = """filename:       /lib/modules/6.1.0-30-amd64/updates/dkms/nvidia.ko
alias:          char-major-195-*
version:        595.91.07
supported:      external
license:        Dual MIT/GPL
firmware:       nvidia/595.91.07/gsp_tu10x.bin
srcversion:     1A2B3C
depends:
name:           nvidia
vermagic:       6.1.0-30-amd64 SMP preempt mod_unload modversions
sig_id:         PKCS#7
signer:         DKMS module signing key
sig_key:        62:4F:B5
parm:           NVreg_ResmanDebugLevel:int
"""


def answering(root: Path, files: dict[str, Any], answers: dict[str, str | Ran]) -> FakeNode:
    made = node(root, files)
    made.answers.update(answers)
    return made


def test_a_host(tmp_path: Path) -> None:
    host = read_host(answering(tmp_path, {"/etc/os-release": ROCKY}, {"dnf": "", "apt-get": ""}))
    assert (host["distribution"], host["version"], host["major"], host["pretty"]) == ("rocky", "9.7", "9", "Rocky Linux 9.7")
    assert (host["package_manager"], host["image_based"]) == ("dnf", None)


def test_a_family_has_its_own_package_manager(tmp_path: Path) -> None:
    assert read_host(answering(tmp_path, {"/etc/os-release": UBUNTU}, {"dnf": "", "zypper": "", "apt-get": ""}))["package_manager"] == "apt"
    assert read_host(answering(tmp_path, {"/etc/os-release": 'ID=azurelinux\nVERSION_ID="3.0"'}, {"tdnf": ""}))["package_manager"] == "tdnf"
    assert read_host(answering(tmp_path, {"/etc/os-release": "ID=sles"}, {}))["package_manager"] is None


def test_an_image_based_host(tmp_path: Path) -> None:
    assert read_host(node(tmp_path, {"/run/ostree-booted": ""}))["image_based"] == "/run/ostree-booted"


def test_reboot_hints_name_kernel_and_driver_packages_only(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"/run/reboot-required.pkgs": "libc6\nlinux-image-6.1\nlinux-image-6.1\nlibnvidia-ml1\n", "/run/reboot-needed": ""}
    hints = read_reboot_hints(node(tmp_path, files))
    assert [hint.split()[-1] for hint in hints] == ["libnvidia-ml1", "linux-image-6.1", "exists"]


def kernels(*releases: str, image: bool = True) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {}
    for release in releases:
        files[f"/lib/modules/{release}/kernel/x.ko"] = ""
        if image:
            files[f"/boot/vmlinuz-{release}"] = ""
    return files


def test_kernels_and_the_next_one(tmp_path: Path) -> None:
    files = {**kernels("6.1.0-9-amd64", "6.1.0-30-amd64"), "/lib/modules/6.1.0-30-amd64/build/Makefile": "",
        "/lib/modules/5.10.0-1-amd64/updates/dkms/nvidia.ko": ""}
    host = answering(tmp_path, files, {"modinfo -k 6.1.0-30-amd64 nvidia": OPEN_MODINFO, "modinfo": Ran(1, "", "modinfo: ERROR: Module nvidia not found.")})
    found = read_kernels(host, "6.1.0-9-amd64")
    assert (found["running"], found["next"]) == ("6.1.0-9-amd64", "6.1.0-30-amd64")
    module = {"path": "/lib/modules/6.1.0-30-amd64/updates/dkms/nvidia.ko", "version": "595.91.07", "flavour": "open", "signer": "DKMS module signing key"}
    assert found["installed"] == [
        {"release": "6.1.0-9-amd64", "headers": False, "module": None}, {"release": "6.1.0-30-amd64", "headers": True, "module": module},
    ]


def test_grubby_knows_the_next_kernel(tmp_path: Path) -> None:
    host = answering(tmp_path, kernels("5.14.0-1.el9", "5.14.0-9.el9"), {"grubby --default-kernel": "/boot/vmlinuz-5.14.0-1.el9\n"})
    assert read_kernels(host, "5.14.0-9.el9")["next"] == "5.14.0-1.el9"
    host.answers["grubby --default-kernel"] = Ran(1, "", "unable to find default kernel")
    assert read_kernels(host, "5.14.0-1.el9")["next"] == "5.14.0-9.el9"


def test_without_boot_images_the_running_kernel_is_the_next(tmp_path: Path) -> None:
    found = read_kernels(node(tmp_path, kernels("6.18.0", image=False)), "6.12.1")
    assert found["next"] == "6.12.1" and [kernel["release"] for kernel in found["installed"]] == ["6.12.1", "6.18.0"]


def test_debians_name_of_the_module(tmp_path: Path) -> None:
    current = OPEN_MODINFO.replace("nvidia.ko", "nvidia-current.ko").replace("Dual MIT/GPL", "NVIDIA").replace("signer:  ", "nobody:  ")
    host = answering(tmp_path, kernels("6.1"), {"modinfo -k 6.1 nvidia-current": current, "modinfo": Ran(1, "", "not found")})
    module = read_kernels(host, "6.1")["installed"][0]["module"]
    assert (module["flavour"], module["signer"]) == ("proprietary", None) and module["path"].endswith("nvidia-current.ko")


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_a_module_is_read_without_modinfo(tmp_path: Path, suffix: str, pack: Any) -> None:
    content = b"\x7fELF junk\0srcversion=1A\0license=Dual MIT/GPL\0version=595.91.07\0depends=\0"
    dep = f"kernel/a.ko:\nextra/nvidia-uvm.ko{suffix}: extra/nvidia.ko{suffix}\nextra/nvidia.ko{suffix}: kernel/a.ko\n"
    files = {**kernels("6.1"), "/lib/modules/6.1/modules.dep": dep, f"/lib/modules/6.1/extra/nvidia.ko{suffix}": pack(content)}
    module = read_kernels(node(tmp_path, files), "6.1")["installed"][0]["module"]
    assert module == {"path": f"/lib/modules/6.1/extra/nvidia.ko{suffix}", "version": "595.91.07", "flavour": "open", "signer": None}


def test_a_module_that_cannot_be_unpacked_has_no_version(tmp_path: Path) -> None:
    files = {**kernels("6.1"), "/lib/modules/6.1/modules.dep": "extra/nvidia.ko.xz:\n", "/lib/modules/6.1/extra/nvidia.ko.xz": b"no xz"}
    assert read_kernels(node(tmp_path, files), "6.1")["installed"][0]["module"]["version"] == ""


@pytest.mark.parametrize(("text", "expected"), [
    ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build  (dvs-builder@U22)\nGCC version: x\n", ("595.91.07", "open")),
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.309.01  Sat Aug 19 01:15:15 UTC 2023\nGCC version:  gcc version 12\n", ("535.309.01", "proprietary")),
    ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  620.20  Release Build\n", ("620.20", "open")),
    ("", None), ("GCC version: 12.2.0 x\n", None),
])
def test_the_loaded_module(text: str, expected: tuple[str, str] | None) -> None:
    assert parse_loaded(text) == (None if expected is None else {"version": expected[0], "flavour": expected[1]})


def test_nouveau_is_seen(tmp_path: Path) -> None:
    assert read_loaded(node(tmp_path, {"/proc/modules": "nouveau 2400 0 - Live 0x0\next4 1 0 - Live 0x0\n"})) == {"module": None, "nouveau": True}
    assert read_loaded(node(tmp_path / "b", {"/proc/modules": "ext4 1 0 nouveau_not - Live 0x0\n"}))["nouveau"] is False


def test_modinfo_that_shows_no_module() -> None:
    assert parse_modinfo("") is None
    assert parse_modinfo("name: x\n") is None


def device(address: str, vendor: str, kind: str, device_id: str = "0x2330", vpd: bytes | None = None) -> dict[str, str | bytes]:
    base = f"/sys/bus/pci/devices/{address}"
    files: dict[str, str | bytes] = {f"{base}/vendor": f"{vendor}\n", f"{base}/class": f"{kind}\n", f"{base}/device": f"{device_id}\n"}
    return files if vpd is None else {**files, f"{base}/vpd": vpd}


def test_gpus_and_switches_on_pci(tmp_path: Path) -> None:
    files = {
        **device("0000:41:00.0", "0x10de", "0x030200"), **device("0000:01:00.0", "0x10DE", "0x030000", "0x2BB5"), **device("0000:05:00.0", "0x10de",
            "0x068000", "0x22a3"),
        **device("0000:42:00.1", "0x10de", "0x040300"), **device("0000:06:00.0", "0x1002", "0x030000"),
        **device("0000:07:00.0", "0x15b3", "0x020700", "0x1021", b"\x82\x00SW_MNG"),
    }
    found = read_pci(node(tmp_path, files))
    assert found["gpus"] == [{"address": "0000:01:00.0", "device": "2bb5", "class": "0300"}, {"address": "0000:41:00.0", "device": "2330", "class": "0302"}]
    assert found["switches"] == [{"address": "0000:05:00.0", "device": "22a3", "vendor": "10de"}]


def test_switches_of_nvlink_5(tmp_path: Path) -> None:
    files = {
        **device("0000:41:00.0", "0x10de", "0x030200", "0x2901"), **device("0000:07:00.0", "0x15b3", "0x020700", "0x1021", b"\x82 SW_MNG x"),
        **device("0000:08:00.0", "0x15b3", "0x020700", "0x1021", b"\x82 ConnectX"), **device("0000:09:00.0", "0x15b3", "0x020000", "0x1021", b"SW_MNG"),
    }
    assert read_pci(node(tmp_path, files))["switches"] == [{"address": "0000:07:00.0", "device": "1021", "vendor": "15b3"}]


def test_a_gpu_for_virtual_machines(tmp_path: Path) -> None:
    device = "/sys/bus/pci/devices/0000:01:00.0"
    host = node(tmp_path, {f"{device}/vendor": "0x10de", f"{device}/device": "0x2330", f"{device}/class": "0x030200", "/sys/bus/pci/drivers/vfio-pci/x": ""})
    (tmp_path / device[1:] / "driver").symlink_to("../../drivers/vfio-pci")
    assert read_pci(host)["gpus"] == [{"address": "0000:01:00.0", "device": "2330", "class": "0302", "passed_to": "vfio-pci"}]


def test_no_pci(tmp_path: Path) -> None:
    assert read_pci(node(tmp_path)) == {"gpus": [], "switches": []}


VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


SHIM = "/sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"


@pytest.mark.parametrize(("files", "answers", "enabled", "evidence"), [
    ({VARIABLE: b"\x06\0\0\0\x01", SHIM: b"\x06\0\0\0\x01"}, {}, False, "mokutil --disable-validation"),
    ({VARIABLE: b"\x06\0\0\0\x01", SHIM: b"\x06\0\0\0\0"}, {}, True, "is 1"), ({VARIABLE: b"\x06\0\0\0\x01", SHIM: b""}, {}, True, "is 1"),
    ({VARIABLE: b"\x06\0\0\0\x01"}, {}, True, "is 1"), ({VARIABLE: b"\x06\0\0\0\0"}, {}, False, "is 0"), ({}, {}, False, "not started by EFI"),
    ({"/sys/firmware/efi/x": ""}, {"mokutil --sb-state": "SecureBoot enabled\n"}, True, "mokutil --sb-state: SecureBoot enabled"),
    ({"/sys/firmware/efi/x": ""}, {"mokutil --sb-state": Ran(255, "", "EFI variables are not supported on this system")}, False, "not supported"),
    ({"/sys/firmware/efi/x": ""}, {}, False, "does not exist"),
])
def test_secure_boot(tmp_path: Path, files: dict[str, Any], answers: dict[str, Any], enabled: bool, evidence: str) -> None:
    found = read_secure_boot(answering(tmp_path, files, answers))
    assert found["enabled"] is enabled and evidence in found["evidence"]


@pytest.mark.parametrize(("value", "said", "enrolled"), [
    (1, "/var/lib/dkms/mok.pub is already enrolled\n", True), (1, "/var/lib/dkms/mok.pub is not enrolled\n", False),
    (1, "/var/lib/dkms/mok.pub is already in the enrollment request\n", False), (0, "/var/lib/dkms/mok.pub is already enrolled\n", False),
])
def test_a_key_of_dkms_that_the_firmware_knows(tmp_path: Path, value: int, said: str, enrolled: bool) -> None:
    files = {"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": bytes([6, 0, 0, 0, value]), "/var/lib/dkms/mok.pub": b"key"}
    assert read_secure_boot(answering(tmp_path, files, {"mokutil --test-key /var/lib/dkms/mok.pub": said}))["dkms_key_enrolled"] is enrolled


SHOWN = """Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled

Id=nvidia-fabricmanager.service
LoadState=not-found
ActiveState=inactive
UnitFileState=

Id=nvidia-imex.service
LoadState=masked
ActiveState=inactive
UnitFileState=masked

Id=k3s-agent.service
LoadState=loaded
ActiveState=activating
UnitFileState=disabled
"""


def test_services(tmp_path: Path) -> None:
    services, kubelet = read_services(answering(tmp_path, {}, {"systemctl show": SHOWN}))
    assert services == {
        "nvidia-persistenced": {"present": True, "active": True, "enabled": True, "masked": False},
        "nvidia-fabricmanager": {"present": False, "active": False, "enabled": False, "masked": False},
        "nvidia-imex": {"present": True, "active": False, "enabled": False, "masked": True},
    }
    assert kubelet


def test_a_unit_without_an_install_section_is_as_good_as_enabled(tmp_path: Path) -> None:
    shown = "Id=nvidia-persistenced.service\nLoadState=loaded\nActiveState=active\nUnitFileState=static\n"
    services, _kubelet = read_services(answering(tmp_path, {}, {"systemctl show": shown}))
    assert services["nvidia-persistenced"] == {"present": True, "active": True, "enabled": True, "masked": False}


@pytest.mark.parametrize(("state", "active"), [("active", True), ("reloading", True), ("activating", False), ("deactivating", False), ("failed", False)])
def test_a_daemon_that_ends_at_each_start_is_not_active(tmp_path: Path, state: str, active: bool) -> None:
    shown = f"Id=nvidia-fabricmanager.service\nLoadState=loaded\nActiveState={state}\nSubState=auto-restart\nUnitFileState=enabled\n"
    services, _kubelet = read_services(answering(tmp_path, {}, {"systemctl show": shown}))
    assert services["nvidia-fabricmanager"]["active"] is active


def test_services_without_systemd(tmp_path: Path) -> None:
    services, kubelet = read_services(node(tmp_path))
    assert not kubelet and not any(any(state.values()) for state in services.values())


def owners_of(table: dict[str, str]) -> Any:
    return lambda paths: {path: table.get(path) for path in paths}


def test_traces_of_other_drivers(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/usr/bin/nvidia-uninstall": "", "/usr/bin/nvidia-installer": "", "/lib/libnvidia-ml.so.595.91.07": "", "/run/nvidia/validations/.driver-ctr-ready": "",
        "/proc/self/mounts": "overlay /run/nvidia/driver overlay rw 0 0\nproc /proc proc rw 0 0\n",
    }
    sources = [
        ("/etc/apt/sources.list.d/cuda.list", "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"), ("/own",
        "https://m/compute/cuda/repos/x/"),
        ("/etc/apt/sources.list.d/p.list", "https://me:s3cret@mirror.example.com/compute/cuda/repos/debian12/x86_64/"),
        ("/etc/apt/sources.list", "http://deb.debian.org/debian"), ("/etc/apt/sources.list.d/l.list", "file:/var/nvidia-driver-local-repo-debian12-595.91.07"),
    ]
    found = read_traces(node(tmp_path, files), "/lib/libnvidia-ml.so.595.91.07", owners_of({"/usr/bin/nvidia-installer": "nvidia-installer"}),
        sources, ["/own"])
    assert found["runfile"] == ["/usr/bin/nvidia-uninstall", "/lib/libnvidia-ml.so.595.91.07"]
    assert found["container_driver"] == ["/run/nvidia/driver", "/run/nvidia/validations/.driver-ctr-ready"]
    assert [source["path"] for source in found["repositories"]] == [f"/etc/apt/sources.list.d/{name}.list" for name in ("cuda", "p", "l")]
    assert found["repositories"][1]["url"] == "https://mirror.example.com/compute/cuda/repos/debian12/x86_64/"


def test_a_bare_host_has_no_traces(tmp_path: Path) -> None:
    assert read_traces(node(tmp_path), None, owners_of({}), [], []) == {
        "runfile": [], "container_driver": [], "library_package": None, "repositories": [],
    }


def test_the_package_that_has_the_library(tmp_path: Path) -> None:
    library = "/usr/lib64/libnvidia-ml.so.580.1.2"
    found = read_traces(node(tmp_path, {library: ""}), library, owners_of({library: "xorg-x11-drv-nvidia-cuda-libs"}), [], [])
    assert (found["runfile"], found["library_package"]) == ([], "xorg-x11-drv-nvidia-cuda-libs")


def test_commands_of_the_real_node() -> None:
    here = Node()
    ran = here.run(["sh", "-c", 'echo "$LC_ALL"; cat; exit 3'], text="hello")
    assert ran == (3, "C\nhello", "")
    for argv, seconds in ((["/no/such/tool"], 5.0), (["sleep", "5"], 0.2)):
        with pytest.raises(FleetError) as failed:
            here.run(argv, seconds)
        assert failed.value.finding.code == "DriverCommandFailed"
    with pytest.raises(FleetError) as failed:
        here.query(["sh", "-c", "echo no >&2; exit 4"])
    assert failed.value.finding.code == "DriverCommandFailed" and "exit status 4: no" in failed.value.finding.cause
