# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The unit gpufleet-mig.service as role mig writes it, judged by systemd's own tools beside the units of a real node."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible.plugins.filter.core import comment
from jinja2 import Environment, StrictUndefined

ROLE = Path(__file__).resolve().parents[3] / "roles" / "mig"
KUBELETS = ["kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service"]
# What orders these units where their makers ship them.
NETWORK = "Wants=network-online.target\nAfter=network-online.target\n"
NEIGHBOURS = {
    "nvidia-persistenced.service": "",
    "nvidia-fabricmanager.service": "Requires=network-online.target\nAfter=network-online.target\n",
    "nvidia-dcgm.service": "After=nvidia-fabricmanager.service\n",
    "containerd.service": "After=network.target dbus.service local-fs.target\n",
    **dict.fromkeys(KUBELETS, f"{NETWORK}After=containerd.service\n"),
}


@pytest.fixture(scope="module")
def unit() -> str:
    """The text of the unit with the role's defaults."""
    names = {"mig_boot_wait", "mig_boot_timeout", "mig_boot_python", "__mig_boot_kubelets", "__mig_boot_engine"}
    variables = {
        name: value for file in ("defaults", "vars") for name, value in yaml.safe_load((ROLE / file / "main.yml").read_text()).items() if name in names
    }
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["comment"] = comment
    return environment.from_string((ROLE / "templates" / "gpufleet-mig.service.j2").read_text()).render(ansible_managed="Ansible managed", **variables)


@pytest.fixture
def root(tmp_path: Path, unit: str) -> Path:
    """A root folder with the unit enabled in it, and its neighbours."""
    if shutil.which("systemd-analyze") is None or shutil.which("systemctl") is None:
        pytest.skip("systemd is not installed")
    folder = tmp_path / "etc" / "systemd" / "system"
    folder.mkdir(parents=True)
    for name, order in NEIGHBOURS.items():
        (folder / name).write_text(f"[Unit]\nDescription={name}\n{order}\n[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n")
    (folder / "gpufleet-mig.service").write_text(unit)
    subprocess.run(["systemctl", f"--root={tmp_path}", "enable", *NEIGHBOURS, "gpufleet-mig.service"], check=True, capture_output=True)
    return folder


def verify(folder: Path, *units: str) -> tuple[int, str]:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in units)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"}, capture_output=True, text=True, timeout=60, check=False,
    )
    return done.returncode, "\n".join(line for line in done.stderr.splitlines() if "gpufleet-mig" in line or "cycle" in line)


def test_systemd_has_nothing_to_say_about_it(root: Path) -> None:
    assert verify(root, "gpufleet-mig.service") == (0, "")


def test_it_makes_no_ordering_cycle_with_the_units_of_a_node(root: Path) -> None:
    assert verify(root, "gpufleet-mig.service", *NEIGHBOURS) == (0, "")


def test_the_check_above_sees_a_cycle(root: Path, unit: str) -> None:
    (root / "gpufleet-mig.service").write_text(unit.replace("After=systemd-modules-load.service", "After=kubelet.service systemd-modules-load.service"))
    assert "cycle" in verify(root, "gpufleet-mig.service", *NEIGHBOURS)[1]


def test_every_kubelet_requires_it(root: Path) -> None:
    links = {path.parent.name for path in root.rglob("gpufleet-mig.service") if path.is_symlink()}
    assert links == {"multi-user.target.wants", *(f"{name}.requires" for name in KUBELETS)}


def test_it_asks_for_no_other_unit_and_is_bounded(unit: str) -> None:
    settings = [line.split("=")[0] for line in unit.splitlines() if "=" in line and not line.startswith("#")]
    assert not {"Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Upholds", "Conflicts"} & set(settings)
    assert "TimeoutStartSec=390" in unit.splitlines() and "RefuseManualStop=yes" in unit.splitlines()
    assert not any("systemctl" in line for line in unit.splitlines())
