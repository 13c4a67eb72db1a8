# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Root file systems of hosts that are not the usual Debian: another Debian release, and stand-ins made from the usual one.

A stand-in has the package manager, the os-release and the habits that tell Ansible what it is, on Debian's programs: it proves what is done to a real
dnf or zypper, not what the distribution itself would add (SELinux, its kernel, its own scripts). Its Python is Debian's 3.11.
"""
from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .commands import run
from .errors import ArtifactError
from .progress import QUIET, Progress
from .rootfs import rootfs
from .settings import Settings
from .store import digest

_RECIPE = 2  # raise it when the way of making them changes
_MAIN_SUITE = "bookworm"


@dataclass(frozen=True)
class StandIn:
    """``identity``: os-release. ``packages``: added to Debian's. ``release``: package that says what the system is, with its version.

    ``recorded``: packages that rpm's database names because what they have is there, as Debian's. ``texts``: files with their content.
    """

    identity: dict[str, str]
    packages: tuple[str, ...] = ()
    release: tuple[str, str] = ("", "")
    recorded: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()


_SHELL = "Provides: /bin/sh\nProvides: /usr/bin/sh\nProvides: /sbin/ldconfig\n"
_RPM_TOOLS = ("rpm", "createrepo-c", "gpg", "gpg-agent")
_DNF = ("dnf", "python3-dnf", "dnf-plugins-core", *_RPM_TOOLS)
_ZYPPER = ("zypper", *_RPM_TOOLS)
_DNF_CONF = "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\nskip_if_unavailable=False\n"
#: Plugins of Debian's dnf that others' installations do not have; some of them fail where there is no network.
_DNF_PLUGINS = ("copr", "debuginfo-install", "debuginfo_install", "generate_completion_cache", "local", "post-transaction-actions", "show_leaves")
_NAMES = {"NAME": "Rocky Linux", "ID": "rocky", "ID_LIKE": "rhel centos fedora"}


def _rocky(version: str, code_name: str) -> StandIn:
    major = version.split(".", 1)[0]
    words = f"Rocky Linux release {version} ({code_name})\n"
    identity = {
        **_NAMES, "VERSION": f"{version} ({code_name})", "VERSION_ID": version, "PLATFORM_ID": f"platform:el{major}",
        "PRETTY_NAME": f"Rocky Linux {version} ({code_name})", "CPE_NAME": f"cpe:/o:rocky:rocky:{major}::baseos",
    }
    texts = (("etc/redhat-release", words), ("etc/rocky-release", words), ("etc/dnf/dnf.conf", _DNF_CONF), ("etc/dnf/plugins/versionlock.list", ""))
    recorded = ("bash", "dnf", "python3-dnf", "dnf-plugins-core", "python3-dnf-plugin-versionlock")
    return StandIn(identity, _DNF, ("rocky-release", version), recorded, texts)


_PRODUCT = """\
<?xml version="1.0" encoding="UTF-8"?>
<product schemeversion="0">
  <vendor>SUSE</vendor>
  <name>SLES</name>
  <version>15.6</version>
  <release>0</release>
  <arch>x86_64</arch>
  <summary>SUSE Linux Enterprise Server 15 SP6</summary>
</product>
"""

STAND_INS = {
    "ubuntu2404": StandIn(
        {
            "NAME": "Ubuntu", "ID": "ubuntu", "ID_LIKE": "debian", "VERSION": "24.04.3 LTS (Noble Numbat)", "VERSION_ID": "24.04",
            "VERSION_CODENAME": "noble", "UBUNTU_CODENAME": "noble", "PRETTY_NAME": "Ubuntu 24.04.3 LTS",
        },
        texts=(
            ("etc/lsb-release", 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\nDISTRIB_CODENAME=noble\nDISTRIB_DESCRIPTION="Ubuntu 24.04.3 LTS"\n'),
        ),
    ),
    "el9": _rocky("9.6", "Blue Onyx"),
    "el10": _rocky("10.0", "Red Quartz"),
    "sles15": StandIn(
        {
            "NAME": "SLES", "ID": "sles", "ID_LIKE": "suse", "VERSION": "15-SP6", "VERSION_ID": "15.6",
            "PRETTY_NAME": "SUSE Linux Enterprise Server 15 SP6", "CPE_NAME": "cpe:/o:suse:sles:15:sp6",
        },
        _ZYPPER, ("sles-release", "15.6"), ("bash", "zypper"),
        (("etc/products.d/SLES.prod", _PRODUCT),),
    ),
}


def system_root(system: str, settings: Settings, progress: Progress = QUIET) -> Path:
    """Return the folder with the root file system of a system of sandbox/spec.py. Raises ArtifactError when it cannot be made."""
    main = replace(settings, suite=_MAIN_SUITE)
    if system == "debian12":
        return rootfs(main, progress)
    if system == "debian13":
        return rootfs(replace(settings, suite="trixie"), progress)
    stand_in = STAND_INS[system]
    base = _with_packages(stand_in.packages, main, progress) if stand_in.packages else rootfs(main, progress)
    key = digest([_RECIPE, system, base.parent.name, asdict(stand_in)])
    found = settings.store.find("system", key)
    if found is None:
        with progress.step(f"making the root file system of {system}"):
            found = settings.store.publish("system", key, lambda place: _make(place / "root", base, stand_in))
    return found / "root"


def package_tools(settings: Settings, progress: Progress = QUIET) -> Path:
    """Return a root file system with rpmbuild, createrepo_c and gpg, to be used by chroot. Nothing may write into it outside /tmp and /var/tmp."""
    return _with_packages(_DNF, replace(settings, suite=_MAIN_SUITE), progress)


def _with_packages(packages: tuple[str, ...], settings: Settings, progress: Progress) -> Path:
    """Return the root file system of the usual hosts with more packages of Debian's."""
    base = rootfs(settings, progress)
    key = digest([_RECIPE, base.parent.name, packages])
    found = settings.store.find("rootfs-more", key)
    if found is None:
        if settings.offline:
            raise ArtifactError(f"Debian's packages {', '.join(packages)} are not in {settings.store.root} and nothing may be downloaded.")
        with progress.step(f"adding {packages[0]} to a copy of the hosts' root file system", "about 30 s"):
            found = settings.store.publish("rootfs-more", key, lambda place: _add(place / "root", base, packages))
    return found / "root"


def _add(root: Path, base: Path, packages: tuple[str, ...]) -> None:
    copy_tree(base, root)
    resolv = root / "etc/resolv.conf"
    shutil.copy("/etc/resolv.conf", resolv)
    for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *packages]):
        _in_root(root, command)
    resolv.unlink()
    _in_root(root, ["apt-get", "clean"])


def _in_root(root: Path, command: list[str]) -> None:
    """Run a command in the root file system, which has no /proc: what is asked of apt does not need one."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    run(f"running {command[0]} in {root}", ["chroot", root, *command], env=environment)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a root file system with everything that belongs to it: owners, modes, links, devices."""
    target.parent.mkdir(parents=True, exist_ok=True)
    run(f"copying {source}", ["cp", "--archive", "--reflink=auto", source, target])


def _make(root: Path, base: Path, stand_in: StandIn) -> None:
    copy_tree(base, root)
    text = "".join(f'{key}="{value}"\n' for key, value in stand_in.identity.items())
    (root / "usr/lib/os-release").write_text(text)
    (root / "etc/os-release").unlink(missing_ok=True)
    (root / "etc/os-release").symlink_to("../usr/lib/os-release")
    for place, words in stand_in.texts:
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).write_text(words)
    if not stand_in.packages:
        return
    _make_rpm_system(root, stand_in)


def _make_rpm_system(root: Path, stand_in: StandIn) -> None:
    """Turn Debian with dnf or zypper into a system that knows rpm alone."""
    (root / "etc/rpm").mkdir(exist_ok=True)
    (root / "etc/rpm/macros.system").write_text("%_dbpath /var/lib/rpm\n")
    (root / "etc/ld.so.conf.d/lib64.conf").write_text("/usr/lib64\n")
    if (root / "etc/products.d").is_dir():
        (root / "etc/products.d/baseproduct").symlink_to("SLES.prod")
    for plugin in _DNF_PLUGINS:
        for path in (root / f"etc/dnf/plugins/{plugin}.conf", root / f"usr/lib/python3/dist-packages/dnf-plugins/{plugin}.py"):
            path.unlink(missing_ok=True)
    _record_packages(root, stand_in)
    for pattern in ("etc/apt", "etc/debian_version", "etc/dpkg", "usr/bin/apt*", "usr/bin/dpkg*", "var/lib/apt", "var/lib/dpkg", "var/cache/apt",
                    "usr/lib/python3/dist-packages/apt*", "usr/lib/apt", "etc/yum.repos.d/*", "etc/zypp/repos.d/*"):
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _record_packages(root: Path, stand_in: StandIn) -> None:
    """Record in rpm's database what packages rely on: a shell, and what the system is. Their files are Debian's and the ones written here."""
    name, version = stand_in.release
    scratch = root / "var/tmp/base"
    scratch.mkdir(parents=True)
    recorded = "".join(_RECORDED.format(name=package, provides=_SHELL if package == "bash" else "") for package in stand_in.recorded)
    lists = "".join(f"%files -n {package}\n" for package in stand_in.recorded)
    text = _BASE_SPEC.format(name=name, version=version, major=version.split(".", 1)[0]) + recorded + lists
    (scratch / "base.spec").write_text(text)
    _in_root(root, ["rpmbuild", "-bb", "--quiet", "--define", "_topdir /var/tmp/base", "/var/tmp/base/base.spec"])
    packages = [f"/{path.relative_to(root)}" for path in sorted(scratch.rglob("*.rpm"))]
    _in_root(root, ["rpm", "--install", "--justdb", "--nodeps", "--force-debian", *packages])
    shutil.rmtree(scratch)


_BASE_SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: What the system is
License: BSD
BuildArch: noarch
AutoReqProv: no
Provides: system-release = {version}
Provides: system-release(releasever) = {major}
%description
What the system is.
%files
"""
_RECORDED = """\
%package -n {name}
Summary: stands for the one of Debian that is there
Version: 99
{provides}%description -n {name}
Stands for the one of Debian that is there.
"""
