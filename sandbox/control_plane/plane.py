# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The control plane of one sandbox: real Kubernetes processes on the machine itself, with nothing private but their folder.

Start order: etcd, kube-apiserver, then controller manager and scheduler together. Each step ends with a probe over verified TLS.
"""
from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import probes, processes
from ..errors import SandboxError
from ..state import RunState
from . import components, kubeconfig
from .api import HttpsClient
from .pki import Authority, KeyPair, service_account_keys, sign_token

ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER = "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"
COMPONENTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
BINARIES = (*COMPONENTS, "kubectl", "helm")

READY_TIMEOUT_S = 90.0
_STOP_GRACE_S = {ETCD: 5.0, API_SERVER: 1.0, CONTROLLER_MANAGER: 2.0, SCHEDULER: 2.0}
_KUBELET_CLIENT = "kube-apiserver-kubelet-client"
_PROCESS_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class ControlPlane:
    """The control plane that belongs to an existing run state."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.addresses = state.addresses
        self.authority = Authority(state.pki)
        self.server = f"https://{self.addresses.gateway}:{components.API_PORT}"

    def prepare(self) -> None:
        """Make authority, certificates, keys and kubeconfigs; what exists is kept."""
        self.authority.ensure(f"sandbox {self.state.name}")
        self._files()
        kubeconfig.with_certificate(self.state.admin_kubeconfig, self.server, self.authority.certificate, "admin", self._admin())

    def start(self, binaries: Mapping[str, Path]) -> None:
        """Start what does not run yet and wait until all is ready. Raises SandboxError naming a component that died."""
        files = self._files()
        started = {name: self._ensure(name, binaries[name], arguments) for name, arguments in (
            (ETCD, components.etcd(self.addresses, files)),
            (API_SERVER, components.api_server(self.addresses, files)),
        )}
        etcd = HttpsClient(self.addresses.loopback, components.ETCD_PORT, self.authority.certificate, files.etcd_client)
        self._wait(ETCD, started[ETCD], lambda: etcd.probe("/health"))
        self._wait(API_SERVER, started[API_SERVER], lambda: self.client().probe("/readyz"))
        self._ensure(CONTROLLER_MANAGER, binaries[CONTROLLER_MANAGER], components.controller_manager(self.addresses, files))
        self._ensure(SCHEDULER, binaries[SCHEDULER], components.scheduler(self.addresses, files))
        self._wait(API_SERVER, started[API_SERVER], self._allow_kubelet_requests)

    def wait_controllers(self) -> None:
        """Wait until controller manager and scheduler answer their health probes."""
        for name, port in ((CONTROLLER_MANAGER, components.CONTROLLER_MANAGER_PORT), (SCHEDULER, components.SCHEDULER_PORT)):
            probe = HttpsClient(self.addresses.loopback, port, self.authority.certificate)
            self._wait(name, None, lambda probe=probe: probe.probe("/healthz"))

    def running(self) -> bool:
        """Whether all components run and the API server says that it is ready."""
        if any(self.pid_file(name).running() is None for name in COMPONENTS):
            return False
        try:
            self.client().probe("/readyz")
        except (OSError, probes.NotYet):
            return False
        return True

    def stop(self) -> None:
        """End the processes, dependents first."""
        for name in reversed(COMPONENTS):
            self.pid_file(name).stop(_STOP_GRACE_S[name])

    def client(self, timeout_s: float = 5) -> HttpsClient:
        """Return a client of the API server with the rights of the administrator."""
        return HttpsClient(self.addresses.gateway, components.API_PORT, self.authority.certificate, self._admin(), timeout_s)

    def pid_file(self, name: str) -> processes.PidFile:
        """Return where the component's process is recorded."""
        return processes.PidFile(self.state.pids / f"{name}.json")

    def log(self, name: str) -> Path:
        """Return the component's log file."""
        return self.state.logs / f"{name}.log"

    def check_alive(self) -> None:
        """Raise SandboxError naming the first component that does not run, with the end of its log."""
        for name in COMPONENTS:
            if self.pid_file(name).running() is None:
                raise SandboxError(probes.with_evidence(f"{name} has ended.", processes.tail(self.log(name))))

    def user_kubeconfig(self, user: str, groups: list[str]) -> Path:
        """Return a kubeconfig for ``user`` in ``groups``, with a client certificate."""
        key = hashlib.sha256("\0".join([user, *groups]).encode()).hexdigest()[:12]  # names may hold any character
        path = self.state.root / "kubeconfigs" / f"user-{key}"
        files = self.authority.client(f"user-{key}", user, groups)
        kubeconfig.with_certificate(path, self.server, self.authority.certificate, user, files)
        return path

    def service_account_kubeconfig(self, namespace: str, name: str, expires_in_s: int) -> Path:
        """Return a kubeconfig with a bound token of an existing service account; a negative ``expires_in_s`` makes an expired token.

        The token is signed here because the API itself gives none that lives for less than ten minutes.
        """
        account = self.client().get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
        if account is None:
            raise SandboxError(f"there is no service account {namespace}/{name}; create it first.")
        now = int(time.time())
        token = sign_token(service_account_keys(self.state.pki)[0], {
            "iss": components.SERVICE_ACCOUNT_ISSUER,
            "aud": [components.SERVICE_ACCOUNT_ISSUER],
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "iat": now - 3600,
            "nbf": now - 3600,
            "exp": now + expires_in_s,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]}},
        })
        path = self.state.root / "kubeconfigs" / f"service-account-{namespace}-{name}-{expires_in_s}"
        kubeconfig.with_token(path, self.server, self.authority.certificate, name, token)
        return path

    def node_identity(self, node: str, address: str) -> tuple[KeyPair, KeyPair]:
        """Return (client, serving) certificates of the kubelet on ``node``."""
        client = self.authority.client(f"kubelet-{node}", f"system:node:{node}", ["system:nodes"])
        return client, self.authority.server(f"kubelet-{node}-serving", f"system:node:{node}", [address, node])

    def _admin(self) -> KeyPair:
        return self.authority.client("admin", "kubernetes-admin", ["system:masters"])

    def _files(self) -> components.Files:
        issue, addresses = self.authority, self.addresses
        private, public = service_account_keys(self.state.pki)
        service_names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
        controller_manager = issue.client("controller-manager", "system:kube-controller-manager")
        scheduler = issue.client("scheduler", "system:kube-scheduler")
        folder = self.state.root / "kubeconfigs"
        files = components.Files(
            state=self.state.root,
            authority=issue.certificate,
            etcd=issue.server("etcd", "etcd", [addresses.loopback]),
            etcd_client=issue.client("etcd-client", "kube-apiserver-etcd-client"),
            api_server=issue.server(
                "api-server", "kube-apiserver", [addresses.gateway, "127.0.0.1", components.SERVICE_ADDRESS, *service_names, "localhost"],
            ),
            kubelet_client=issue.client("kubelet-client", _KUBELET_CLIENT),
            controller_manager=issue.server("controller-manager-serving", "kube-controller-manager", [addresses.loopback]),
            scheduler=issue.server("scheduler-serving", "kube-scheduler", [addresses.loopback]),
            token_private_key=private,
            token_public_key=public,
            controller_manager_kubeconfig=folder / "controller-manager",
            scheduler_kubeconfig=folder / "scheduler",
        )
        for path, user, identity in (
            (files.controller_manager_kubeconfig, "system:kube-controller-manager", controller_manager),
            (files.scheduler_kubeconfig, "system:kube-scheduler", scheduler),
        ):
            kubeconfig.with_certificate(path, self.server, issue.certificate, user, identity)
        return files

    def _ensure(self, name: str, binary: Path, arguments: list[str]) -> subprocess.Popen[bytes] | None:
        if self.pid_file(name).running() is not None:
            return None
        environment = dict(_PROCESS_ENVIRONMENT, HOME=os.environ.get("HOME", "/root"))
        return processes.start([str(binary), *arguments], self.log(name), self.pid_file(name), environment, self.state.root)

    def _wait(self, name: str, process: subprocess.Popen[bytes] | None, probe: Any) -> None:
        def possible() -> None:
            if process is not None:
                process.poll()
            if self.pid_file(name).running() is None:
                raise SandboxError(probes.with_evidence(f"{name} has ended.", processes.tail(self.log(name))))

        probes.wait_for(name, probe, READY_TIMEOUT_S, possible, lambda: processes.tail(self.log(name)))

    def _allow_kubelet_requests(self) -> None:
        """Let the API server's own client certificate reach kubelets, for logs and exec."""
        role_binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "sandbox:apiserver-kubelet-client"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _KUBELET_CLIENT}],
        }
        self.client().create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", role_binding)
