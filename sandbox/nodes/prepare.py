# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host has of its own before its first boot: identity, keys, addresses, enabled units. Written into its upper layer."""
from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from string import Template

from ..control_plane import components, kubeconfig
from ..control_plane.plane import ControlPlane
from . import cgroups, hardware, systems
from .layer import link as _link
from .layer import write as _write
from .record import HostRecord
from .ssh import SshAccess, write_key_pair

TEMPLATES = Path(__file__).resolve().parent / "templates"
GPU_LABEL = "sandbox.gpufleet.dra/pci-10de=true"  # in the place of node feature discovery's PCI source
_MACHINE_NAMESPACE = uuid.UUID("5f0c3a52-6a3b-4d0e-9a53-3f1a8f6f0d11")
_UNITS = "/etc/systemd/system"
_CLIENT_PEM = "pki/kubelet-client-current.pem"  # from /etc/kubernetes; a kubelet gives the file with its current certificate this name

#: unit -> target that wants it
_ENABLED = {
    f"{_UNITS}/sandbox-masks.service": "sysinit.target",
    f"{_UNITS}/emulated-hardware.service": "sysinit.target",
    f"{_UNITS}/emulated-nvidia-driver.service": "multi-user.target",
    "/lib/systemd/system/ssh.service": "multi-user.target",
}
_ENABLED_WITH_KUBERNETES = {f"{_UNITS}/kubernetes-node.target": "multi-user.target"}

#: Debian's own units that a host cannot use here, or that would only cost time and inotify instances (limits.py).
#: logind stays: shutdown and reboot go through it.
_MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "getty.target",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-networkd.service",
    "systemd-timesyncd.service",
)


def prepare(host: HostRecord, sandbox: str, names: Mapping[str, str], access: SshAccess, plane: ControlPlane | None) -> None:
    """Fill the host's folder. ``names``: address by host name, for /etc/hosts. ``plane`` is None for a host without Kubernetes."""
    for folder in (host.upper, host.folder / "work", host.root, *host.bind_sources().values()):
        folder.mkdir(parents=True, exist_ok=True)
    _write_identity(host, sandbox, names)
    _write_ssh(host, access)
    hardware.write(host)
    units = dict(_ENABLED)
    if plane is not None:
        units.update(_ENABLED_WITH_KUBERNETES)
        _write_kubernetes(host, plane)
    for unit, target in units.items():
        _link(host, f"{_UNITS}/{target}.wants/{Path(unit).name}", unit)
    for unit in _MASKED:
        _link(host, f"{_UNITS}/{unit}", "/dev/null")


def _write_identity(host: HostRecord, sandbox: str, names: Mapping[str, str]) -> None:
    _write(host, "etc/sandbox/README", "Files of the sandbox that this host was made by.\n")
    _write(host, "etc/hostname", f"{host.name}\n")
    _write(host, "etc/machine-id", f"{uuid.uuid5(_MACHINE_NAMESPACE, f'{sandbox}/{host.name}').hex}\n", 0o444)
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in names.items())]
    _write(host, "etc/hosts", "".join(f"{line}\n" for line in lines))
    _write(host, "etc/resolv.conf", "")
    if host.packages:
        systems.write_sources(host)


def _write_ssh(host: HostRecord, access: SshAccess) -> None:
    folder = host.upper / "etc" / "ssh"
    folder.mkdir(parents=True, exist_ok=True)
    public = folder / "ssh_host_ed25519_key.pub"
    write_key_pair(folder / "ssh_host_ed25519_key", public, host.name)
    access.trust([host.address, host.name], " ".join(public.read_text().split()[:2]))
    (host.upper / "root").mkdir(mode=0o700, exist_ok=True)
    (host.upper / "root" / ".ssh").mkdir(mode=0o700, exist_ok=True)
    _write(host, "root/.ssh/authorized_keys", access.public_key.read_text(), 0o600)


def _write_kubernetes(host: HostRecord, plane: ControlPlane) -> None:
    pod_network = f"10.244.{host.slot}.0/24"
    fields = {
        "address": host.address,
        "api_server": f"{host.gateway}:{components.API_PORT}",
        "cgroup_driver": "systemd" if cgroups.is_v2() else "cgroupfs",
        "pod_network": pod_network,
        "service_address": components.SERVICE_ADDRESS,
        "systemd_cgroup": "true" if cgroups.is_v2() else "false",
    }
    for template, place in (
        ("containerd.toml", "etc/containerd/config.toml"),
        ("kubelet.yaml", "etc/kubernetes/kubelet.yaml"),
        ("nat.nft", "etc/sandbox/nat.nft"),
        ("pods.conflist", "etc/cni/net.d/10-pods.conflist"),
    ):
        _write(host, place, Template((TEMPLATES / template).read_text()).substitute(fields))
    labels = GPU_LABEL if host.spec["gpus"] else ""
    environment = f"NODE_NAME={host.name}\nNODE_IP={host.address}\nNODE_LABELS={labels}\n"
    _write(host, "etc/sandbox/kubelet.env", environment)
    client, serving = plane.node_identity(host.name, host.address)
    folder = host.upper / "etc" / "kubernetes"
    (folder / "pki").mkdir(parents=True, exist_ok=True)
    _write(host, f"etc/kubernetes/{_CLIENT_PEM}", client.certificate.read_text() + client.key.read_text(), 0o600)
    kubeconfig.with_certificate_file(folder / "kubelet.conf", plane.server, plane.authority.certificate, host.name, _CLIENT_PEM)
    shutil.copy(plane.authority.certificate, folder / "pki" / "ca.crt")
    shutil.copy(serving.certificate, folder / "pki" / "kubelet-serving.crt")
    shutil.copy(serving.key, folder / "pki" / "kubelet-serving.key")
