# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Command lines of the control plane's processes. Pure: settings in, argument lists out.

Each listens on the sandbox's loopback address, the API server on its bridge, with the standard port numbers.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..state import Addresses
from .pki import KeyPair

API_PORT = 6443
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"  # of the Service kubernetes: the first of SERVICE_NETWORK
SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class Files:
    """What the processes read and write."""

    state: Path  # folder for etcd's data and the like
    authority: Path
    etcd: KeyPair
    etcd_client: KeyPair
    api_server: KeyPair
    kubelet_client: KeyPair
    controller_manager: KeyPair
    scheduler: KeyPair
    token_private_key: Path
    token_public_key: Path
    controller_manager_kubeconfig: Path
    scheduler_kubeconfig: Path


def etcd(addresses: Addresses, files: Files) -> list[str]:
    """Arguments of etcd: TLS with client certificates for clients and peers."""
    clients = f"https://{addresses.loopback}:{ETCD_PORT}"
    peers = f"https://{addresses.loopback}:{ETCD_PEER_PORT}"
    return [
        f"--data-dir={files.state / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        f"--cert-file={files.etcd.certificate}",
        f"--key-file={files.etcd.key}",
        f"--trusted-ca-file={files.authority}",
        "--client-cert-auth",
        f"--peer-cert-file={files.etcd.certificate}",
        f"--peer-key-file={files.etcd.key}",
        f"--peer-trusted-ca-file={files.authority}",
        "--peer-client-cert-auth",
        "--unsafe-no-fsync",  # nothing here has to survive a crash of the machine itself
        "--logger=zap",
    ]


def api_server(addresses: Addresses, files: Files) -> list[str]:
    """Arguments of kube-apiserver: Node and RBAC authorizers, bound service account tokens, nobody anonymous."""
    return [
        f"--bind-address={addresses.gateway}",
        f"--advertise-address={addresses.gateway}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={files.api_server.certificate}",
        f"--tls-private-key-file={files.api_server.key}",
        f"--client-ca-file={files.authority}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--etcd-servers=https://{addresses.loopback}:{ETCD_PORT}",
        f"--etcd-cafile={files.authority}",
        f"--etcd-certfile={files.etcd_client.certificate}",
        f"--etcd-keyfile={files.etcd_client.key}",
        f"--kubelet-certificate-authority={files.authority}",
        f"--kubelet-client-certificate={files.kubelet_client.certificate}",
        f"--kubelet-client-key={files.kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer={SERVICE_ACCOUNT_ISSUER}",
        f"--service-account-signing-key-file={files.token_private_key}",
        f"--service-account-key-file={files.token_public_key}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--allow-privileged=true",
    ]


def controller_manager(addresses: Addresses, files: Files) -> list[str]:
    """Arguments of kube-controller-manager; a dead node is noticed after 20 s instead of 40 s."""
    return [
        f"--bind-address={addresses.loopback}",
        f"--secure-port={CONTROLLER_MANAGER_PORT}",
        f"--tls-cert-file={files.controller_manager.certificate}",
        f"--tls-private-key-file={files.controller_manager.key}",
        f"--kubeconfig={files.controller_manager_kubeconfig}",
        f"--authentication-kubeconfig={files.controller_manager_kubeconfig}",
        f"--authorization-kubeconfig={files.controller_manager_kubeconfig}",
        f"--client-ca-file={files.authority}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={files.token_private_key}",
        f"--root-ca-file={files.authority}",
        "--leader-elect=false",
        "--node-monitor-grace-period=20s",
        f"--flex-volume-plugin-dir={files.state / 'volumeplugins'}",  # the default lies outside the cache
    ]


def scheduler(addresses: Addresses, files: Files) -> list[str]:
    """Arguments of kube-scheduler."""
    return [
        f"--bind-address={addresses.loopback}",
        f"--secure-port={SCHEDULER_PORT}",
        f"--tls-cert-file={files.scheduler.certificate}",
        f"--tls-private-key-file={files.scheduler.key}",
        f"--kubeconfig={files.scheduler_kubeconfig}",
        f"--authentication-kubeconfig={files.scheduler_kubeconfig}",
        f"--authorization-kubeconfig={files.scheduler_kubeconfig}",
        f"--client-ca-file={files.authority}",
        "--leader-elect=false",
    ]
