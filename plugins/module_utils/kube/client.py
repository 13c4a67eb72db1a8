# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one door to the Kubernetes API: kubernetes.core's options, raw JSON out, every failure a registered reason.

No request waits for ever: a server that does not answer is given up after 10 s to connect and 60 s to answer. Resources are addressed by
their paths, so nothing is asked for but what is needed, and no discovery cache is written to the temp folder. Messages name the server, the
verb and the resource; they never hold a token, a header or a kubeconfig.
"""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as kubernetes_core
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException

from ..reasons import Finding, FleetError, finding

try:
    import urllib3
    import yaml
    from kubernetes.client import ApiClient
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.dynamic import DynamicClient
except ImportError as error:
    MISSING_LIBRARY = str(error.name or "kubernetes").partition(".")[0]
else:
    MISSING_LIBRARY = ""

PAGE_SIZE = 500
_EXPIRED_LIST_RETRIES = 3
_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 60
_MERGE_PATCH = "application/merge-patch+json"


class Resource(NamedTuple):
    """One kind as the API addresses it. ``group`` is empty for the core group."""

    group: str
    version: str
    plural: str
    namespaced: bool = False

    @property
    def group_version(self) -> str:
        """The apiVersion, "v1" or "resource.k8s.io/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the URL path of the collection or of one object."""
        parts = ["apis" if self.group else "api", self.group_version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/" + "/".join(parts)


NODES = Resource("", "v1", "nodes")
PODS = Resource("", "v1", "pods", namespaced=True)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", namespaced=True)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices")


class KubeApi:
    """A connected client. Methods raise FleetError with a reason of the registry's Kubernetes API section."""

    def __init__(self, dynamic_client: Any) -> None:
        self._client = dynamic_client
        self.host = dynamic_client.configuration.host

    @classmethod
    def connect(cls, params: dict[str, Any]) -> KubeApi:
        """Connect with kubernetes.core's authentication options out of ``params``; other keys are ignored, so module params may be passed whole.

        Raises LibraryMissing, KubeconfigUnusable, ApiUnreachable, ApiTlsUntrusted or ApiUnauthorized: connecting already asks the server.
        """
        if MISSING_LIBRARY:
            raise FleetError(finding("LibraryMissing", "controller", library=MISSING_LIBRARY, python=sys.executable))
        options = {name: params[name] for name in AUTH_ARG_SPEC if params.get(name) is not None}
        where = str(options.get("host") or "Kubernetes API")
        try:
            connected = cls(_client(options))
        except (CoreException, ConfigException, yaml.YAMLError, OSError, TypeError, ValueError) as error:
            raise FleetError(finding("KubeconfigUnusable", where, why=_one_line(error))) from None
        connected._greet()
        return connected

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """Return one object, or None if there is none of that name."""
        try:
            return self._request("get", resource, namespace, name)
        except _NotFound:
            return None

    def list_all(self, resource: Resource, namespace: str | None = None, **selectors: str) -> list[dict[str, Any]]:
        """Return all objects, read in pages of 500; ``selectors`` are ``label_selector`` and ``field_selector``.

        A continue token that expires in between (410) starts the list again, so the result is always of one resource version.
        """
        for _attempt in range(_EXPIRED_LIST_RETRIES):
            try:
                return [item for page in self._pages(resource, namespace, selectors) for item in page]
            except _Expired:
                continue
        why = f"the list expired {_EXPIRED_LIST_RETRIES} times while it was read"
        raise FleetError(finding("ApiRequestFailed", self.host, verb="list", resource=resource.plural, why=why))

    def patch(self, resource: Resource, name: str, body: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
        """Merge ``body`` into one object (RFC 7386: null removes a key) and return the object as it is then."""
        try:
            return self._request("patch", resource, namespace, name, body=body, content_type=_MERGE_PATCH)
        except _NotFound:
            why = f"there is no object {name}"
            raise FleetError(finding("ApiRequestFailed", self.host, verb="patch", resource=resource.plural, why=why)) from None

    def _greet(self) -> None:
        """Ask for the server's version, so that what is wrong with the connection or the credentials is said at once."""
        try:
            self._client.request("GET", "/version", serialize=False, _request_timeout=(_CONNECT_TIMEOUT_S, _CONNECT_TIMEOUT_S))
        except (urllib3.exceptions.HTTPError, ApiException) as error:
            _raise_transport(error, self.host, "connect", None)

    def _pages(self, resource: Resource, namespace: str | None, selectors: dict[str, str]) -> Iterator[list[dict[str, Any]]]:
        token = None
        while True:
            try:
                page = self._request("list", resource, namespace, None, limit=PAGE_SIZE, _continue=token, **selectors)
            except _NotFound:
                served = finding("ApiNotServed", self.host, resource=resource.plural, group_version=resource.group_version)
                raise FleetError(served) from None
            yield page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return

    def _request(self, verb: str, resource: Resource, namespace: str | None, name: str | None, **options: Any) -> dict[str, Any]:
        method = "PATCH" if verb == "patch" else "GET"
        timeout = (_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S)
        path = resource.path(namespace, name)
        try:
            answer = self._client.request(method, path, serialize=False, _request_timeout=timeout, **options)
            return json.loads(answer.data)
        except (urllib3.exceptions.HTTPError, ApiException, ValueError) as error:
            _raise_transport(error, self.host, verb, resource, namespace)


class _NotFound(Exception):
    """The API server answered 404."""


class _Expired(Exception):
    """The API server answered 410: the continue token is too old."""


def _client(options: dict[str, Any]) -> DynamicClient:
    """Return a client by kubernetes.core's options and environment variables.

    kubernetes.core offers this only together with a discovery that waits for ever on a silent server, hence its parts are used.
    """
    configuration = kubernetes_core._create_configuration(kubernetes_core._create_auth_spec(**options))
    for path in filter(None, (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)):
        # A file that is missing is said here; in the midst of a request it would look like a broken connection.
        with open(path, "rb"):
            pass
    # urllib3 by itself would make three more attempts at a server that does not answer.
    configuration.retries = urllib3.Retry(total=3, connect=0, read=1)
    client = ApiClient(configuration)
    for name, value in kubernetes_core._create_headers(**options).items():
        kubernetes_core._set_header(client, name, value)
    return DynamicClient(client, discoverer=lambda *_arguments: None)


def _raise_transport(error: Exception, host: str, verb: str, resource: Resource | None, namespace: str | None = None) -> NoReturn:
    """Raise what a failed request means: FleetError, or _NotFound and _Expired for the caller to decide."""
    status = getattr(error, "status", None)
    plural = resource.plural if resource else "API"
    if status == 404 and resource is not None:
        raise _NotFound from None
    if status == 410 and resource is not None:
        raise _Expired from None
    if status == 401:
        raise FleetError(finding("ApiUnauthorized", host)) from None
    if status == 403 and resource is not None:
        raise FleetError(_forbidden(_server_message(error), host, verb, resource, namespace)) from None
    if _is_tls(error):
        raise FleetError(finding("ApiTlsUntrusted", host, why=_root_cause(error))) from None
    if not status:
        raise FleetError(finding("ApiUnreachable", host, why=_root_cause(error))) from None
    why = f"{status} {_server_message(error)}".rstrip()
    raise FleetError(finding("ApiRequestFailed", host, verb=verb, resource=plural, why=why)) from None


def _forbidden(message: str, host: str, verb: str, resource: Resource, namespace: str | None) -> Finding:
    user = re.search(r'User "([^"]*)"', message)
    scope = f"in namespace {namespace}" if namespace else ("in all namespaces" if resource.namespaced else "in the cluster")
    rule = f'apiGroups: ["{resource.group}"], resources: ["{resource.plural}"], verbs: ["{verb}"]'
    details = {"verb": verb, "resource": resource.plural, "group": resource.group, "namespace": namespace}
    fields = {"verb": verb, "resource": resource.plural, "scope": scope, "rule": rule, "role": "Role" if namespace else "ClusterRole"}
    return finding("ApiForbidden", host, details, user=f"user {user.group(1)}" if user else "this user", **fields)


def _server_message(error: Exception) -> str:
    """Return the message of the Status object in an API error's body; empty if there is none."""
    try:
        return _one_line(json.loads(getattr(error, "body", None) or "")["message"])
    except (TypeError, ValueError, KeyError):
        return _one_line(getattr(error, "reason", None) or "")


def _is_tls(error: Exception) -> bool:
    reason = getattr(error, "reason", None)
    if isinstance(error, urllib3.exceptions.SSLError) or isinstance(reason, urllib3.exceptions.SSLError):
        return True
    return isinstance(error, ApiException) and not error.status and "SSLError" in str(reason)


def _root_cause(error: Exception) -> str:
    """Return the innermost text of urllib3's nested errors, without object addresses."""
    reason = getattr(error, "reason", None)
    text = _one_line(reason if reason is not None else error)
    return re.sub(r"^<[^>]*>:\s*|^\w*(?:Connection|Pool)\([^)]*\):\s*", "", text)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())
