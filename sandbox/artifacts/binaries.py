# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The table of programs: where each is built from, how it gets its version, and which official release has it."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .settings import CONTAINERD_GRAPH, KUBERNETES_GRAPH, SANDBOX

OPERATOR_SOURCE = SANDBOX / "gpu_operator" / "reconciler"
DRA_DRIVER_MODULE = "sigs.k8s.io/dra-driver-nvidia-gpu"


@dataclass(frozen=True)
class Release:
    """An official release file. ``{version}`` (without v) is filled into the paths.

    ``site`` names the Settings field with the base address; ``member`` is the program's path inside a tar archive, empty for a plain file.
    The checksum file holds either the bare SHA-256 or lines of ``<sha256>  <file name>``.
    """

    site: str
    path: str
    checksum_path: str
    member: str = ""


@dataclass(frozen=True)
class Binary:
    """One program.

    ``graph``: folder with the go.mod that pins it. ``module``: the module whose version is the program's. ``stamps``: Go variables
    set by the linker, ``{version}``, ``{major}`` and ``{minor}`` filled in. ``sources``: folders of this checkout that are compiled in.
    ``follows_kubernetes``: built for the chosen Kubernetes version instead of the committed one. ``build_time``: for the progress line,
    2 cores, empty compile cache.
    """

    name: str
    package: str
    module: str
    graph: Path = KUBERNETES_GRAPH
    stamps: tuple[str, ...] = ()
    cgo: bool = False
    sources: tuple[Path, ...] = ()
    follows_kubernetes: bool = False
    build_time: str = "about 1 min"
    release: Release | None = None


def _kubernetes(name: str, build_time: str) -> Binary:
    path = f"release/v{{version}}/bin/linux/amd64/{name}"
    base = "k8s.io/component-base/version"
    return Binary(
        name=name,
        package=f"k8s.io/kubernetes/cmd/{name}",
        module="k8s.io/kubernetes",
        # without these the server calls itself v0.0.0 and clients' version checks fail
        stamps=(
            f"{base}.gitVersion=v{{version}}",
            f"{base}.gitMajor={{major}}",
            f"{base}.gitMinor={{minor}}",
            f"{base}.gitTreeState=clean",
            "k8s.io/client-go/pkg/version.gitVersion=v{version}",
        ),
        follows_kubernetes=True,
        build_time=build_time,
        release=Release("kubernetes_release_url", path, path + ".sha256"),
    )


def _containerd(name: str, build_time: str) -> Binary:
    archive = "v{version}/containerd-{version}-linux-amd64.tar.gz"
    return Binary(
        name=name,
        package=f"github.com/containerd/containerd/v2/cmd/{name}",
        module="github.com/containerd/containerd/v2",
        graph=CONTAINERD_GRAPH,
        stamps=("github.com/containerd/containerd/v2/version.Version={version}",),
        build_time=build_time,
        release=Release("containerd_release_url", archive, archive + ".sha256sum", f"bin/{name}"),
    )


_ALL = (
    Binary(
        name="etcd",
        package="go.etcd.io/etcd/server/v3",
        module="go.etcd.io/etcd/server/v3",
        release=Release(
            "etcd_release_url",
            "v{version}/etcd-v{version}-linux-amd64.tar.gz",
            "v{version}/SHA256SUMS",
            "etcd-v{version}-linux-amd64/etcd",
        ),
    ),
    Binary(
        name="gpu-kubelet-plugin",
        package=f"{DRA_DRIVER_MODULE}/cmd/gpu-kubelet-plugin",
        module=DRA_DRIVER_MODULE,
        stamps=(DRA_DRIVER_MODULE + "/internal/info.version=v{version}",),
        cgo=True,
        sources=(SANDBOX / "build" / "nvfm",),
        build_time="about 2 min",
    ),
    _kubernetes("kube-apiserver", "about 2 min"),
    _kubernetes("kube-scheduler", "about 1 min"),
    _kubernetes("kube-controller-manager", "about 1 min"),
    _kubernetes("kubectl", "about 1 min"),
    _kubernetes("kubelet", "about 5 min"),
    Binary(
        name="helm",
        package="helm.sh/helm/v4/cmd/helm",
        module="helm.sh/helm/v4",
        stamps=("helm.sh/helm/v4/internal/version.version=v{version}",),
        release=Release(
            "helm_release_url",
            "helm-v{version}-linux-amd64.tar.gz",
            "helm-v{version}-linux-amd64.tar.gz.sha256sum",
            "linux-amd64/helm",
        ),
    ),
    Binary(
        name="nvidia-cdi-hook",
        package="github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook",
        module="github.com/NVIDIA/nvidia-container-toolkit",
        stamps=("github.com/NVIDIA/nvidia-container-toolkit/internal/info.version={version}",),
        cgo=True,
    ),
    Binary(
        name="gpu-operator",
        package="gpufleet.dra/sandbox/gpu-operator",
        module="gpufleet.dra/sandbox/gpu-operator",
        sources=(OPERATOR_SOURCE,),
    ),
    _containerd("containerd", "about 2 min"),
    _containerd("containerd-shim-runc-v2", "about 1 min"),
    _containerd("ctr", "about 1 min"),
)

#: Every program by name, in the order in which building them is fastest (the plugin and the API server warm the compile cache).
BINARIES: dict[str, Binary] = {binary.name: binary for binary in _ALL}
