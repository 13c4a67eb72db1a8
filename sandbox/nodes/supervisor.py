# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The process that owns one host: `python -m sandbox.nodes.supervisor FOLDER`.

It runs as the first process of private mount and pid namespaces, so that killing it (or the `unshare` around it) ends the host with all
its containers at once: a power cut. It mounts the host's root, boots it under systemd-nspawn in a network namespace of its own, and boots
it again whenever the host reboots itself. Standard library and light imports only: one such process lives per host.
"""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from . import cgroups, syscalls
from .record import HostRecord, load

REBOOT_EXIT = 133  # systemd-nspawn: the host asked for a reboot
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_CAPABILITIES = "CAP_NET_ADMIN,CAP_SYSLOG,CAP_IPC_LOCK,CAP_BPF,CAP_PERFMON"
_SYSTEM_CALLS = "@keyring bpf perf_event_open @mount"


def nspawn_command(host: HostRecord) -> list[str]:
    """Return the command that boots the host. The machine's clock, sysctls and journal stay out of its reach."""
    binds = [f"--bind={source}:{place}" for place, source in host.bind_sources().items()]
    return [
        "systemd-nspawn", "--boot", "--quiet", f"--directory={host.root}", f"--machine={host.name}",
        "--register=no", "--keep-unit", "--network-namespace-path=/proc/self/ns/net",
        "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe",
        f"--capability={_CAPABILITIES}", f"--system-call-filter={_SYSTEM_CALLS}", *binds,
    ]


def mount_root(host: HostRecord) -> None:
    """Mount the host's root: its own layer over the node layer over the root file system. /run becomes private for nspawn's locks."""
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    layers = f"lowerdir={host.layer}:{host.rootfs},upperdir={host.upper},workdir={host.folder / 'work'}"
    _run("mount", "-t", "overlay", "-o", layers, "overlay", str(host.root))


def supervise(host: HostRecord) -> int:
    """Boot the host until it powers off or fails. Returns nspawn's last exit status."""
    mount_root(host)
    groups = list(host.cgroups) or cgroups.v2_groups()
    while True:
        # through the mount: a file taken from the upper layer behind its back would live on in the overlay
        (host.root / host.boot_id.relative_to(host.upper)).unlink(missing_ok=True)
        cgroups.remove(groups)  # of the last boot, with all that kubelet made in them
        cgroups.make(groups)
        _log("boot")
        started = time.monotonic()
        status = boot(host, groups)
        _log(f"systemd-nspawn ended with status {status} after {time.monotonic() - started:.1f} s")
        if status != REBOOT_EXIT:
            return status


def boot(host: HostRecord, groups: list[Path]) -> int:
    """Boot the host once. Returns nspawn's exit status.

    The child enters its cgroups and a new network namespace, waits until its end of the link has been put there, and becomes nspawn.
    """
    link_made_read, link_made_write = os.pipe()
    entered_read, entered_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(link_made_write)
            os.close(entered_read)
            _become_nspawn(host, groups, entered_write, link_made_read)
        except BaseException as error:  # a forked child must never return into the parent's code
            _log(f"the host could not be booted: {error}")
        os._exit(1)
    os.close(link_made_read)
    os.close(entered_write)
    try:
        if os.read(entered_read, 1):
            _make_link(host, child)
            os.write(link_made_write, b"x")
    finally:
        os.close(link_made_write)
        os.close(entered_read)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become_nspawn(host: HostRecord, groups: list[Path], entered: int, link_made: int) -> None:
    syscalls.die_with_parent()
    os.setsid()
    cgroups.enter(groups)
    syscalls.unshare(syscalls.CLONE_NEWNET)
    os.write(entered, b"x")
    if not os.read(link_made, 1):
        raise OSError("its network link could not be made")
    _configure_network(host)
    console = os.open(host.console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(console, 1)
    os.dup2(console, 2)
    environment = {"PATH": _PATH, "HOME": "/root", "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
    os.execvpe("systemd-nspawn", nspawn_command(host), environment)


def _make_link(host: HostRecord, child: int) -> None:
    # the last boot's network namespace dies late and would keep the name
    subprocess.run(["ip", "link", "delete", host.veth], check=False, stderr=subprocess.DEVNULL)
    _run("ip", "link", "add", host.veth, "type", "veth", "peer", "name", "eth0", "address", host.mac, "netns", str(child))
    _run("ip", "link", "set", host.veth, "master", host.bridge, "up")


def _configure_network(host: HostRecord) -> None:
    """Address the host. There is no default route: it reaches its own network and, through the gateway, the service network."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "address", "add", f"{host.address}/{host.prefix_length}", "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")
    if host.service_network:
        _run("ip", "route", "add", host.service_network, "via", host.gateway)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")  # of this network namespace: pods are routed


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _log(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}", flush=True)


def main(arguments: list[str]) -> int:
    """Run the supervisor; with ``--enter-namespaces`` become `unshare` around it first."""
    if arguments[0] == "--enter-namespaces":
        if cgroups.is_v2():
            cgroups.enter_v2_leaf()
        unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--propagation", "private"]
        os.execvp(unshare[0], [*unshare, sys.executable, "-m", "sandbox.nodes.supervisor", arguments[1]])
    return supervise(load(Path(arguments[0])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
