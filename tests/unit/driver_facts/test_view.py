# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What package sources offer: the choice of a version, and what apt, dnf and zypper say. The texts are the tools' own."""
from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts import dnf_questions, view
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.node import Node, Ran
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.offers import Offer, Offers, Sources, Transaction, empty_transaction
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.view_apt import AptSources, finished_status, parse_madison, parse_simulation
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.view_dnf import DnfSources, repo_file
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.view_zypper import ZypperSources, other_locks, parse_search, parse_summary, said
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.driver_facts.fake_node import FakeNode, node
from tests.unit.driver_facts.test_openpgp import FINGERPRINT, KEY

PINS = ["nvidia-*", "libnvidia-*"]


def offer(*versions: str, own: bool = True) -> list[Offer]:
    return [Offer(version, own) for version in versions]


OFFERS: Offers = {
    "nvidia-driver-cuda": offer("595.91.07-1", "580.178.04-1", "580.173.02-1"), "libnvidia-ml1": offer("580.178.04-1", "580.173.02-1"),
    "dkms": offer("3.0.10-8", own=False), "nvidia-driver-pinning-580": offer("580-1"),
}


class FakeSources(Sources):
    """Offers what the test says, and notes the transaction that is asked for."""

    made: Transaction = empty_transaction()
    wanted: tuple[Any, ...] = ()

    def offers(self, names: Sequence[str]) -> Offers:
        return OFFERS

    def transaction(self, specs: Mapping[str, str], version: str, pins: Sequence[str], remove: Sequence[str]) -> Transaction:
        FakeSources.wanted = (dict(specs), version, list(remove))
        return self.made


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(view._KINDS, "apt", FakeSources)
    monkeypatch.setattr(FakeSources, "made", empty_transaction())


def ask(tmp_path: Path, manager: str = "apt", repository: dict[str, Any] | None = None, **wish: Any) -> dict[str, Any]:
    whole = {"branch": "580", "version": "", "install": ["nvidia-driver-cuda", "libnvidia-ml1", "dkms"], "pins": PINS, "repository": repository, **wish}
    return view.read_view(node(tmp_path), {"host": {"package_manager": manager}}, whole)


def refused(tmp_path: Path, **wish: Any) -> FleetError:
    with pytest.raises(FleetError) as error:
        ask(tmp_path, **wish)
    return error.value


def test_the_newest_of_the_branch(tmp_path: Path) -> None:
    found = ask(tmp_path, remove=["nvidia-open-570"])
    assert (found["available"], found["version"], found["missing"], found["key"]) == (["580.178.04", "580.173.02"], "580.178.04", [], "")
    assert found["packages"] == {"nvidia-driver-cuda": "580.178.04-1", "libnvidia-ml1": "580.178.04-1", "dkms": "3.0.10-8"}
    assert FakeSources.wanted == (found["packages"], "580.178.04", ["nvidia-open-570"])


def test_an_exact_version_and_names_that_nobody_offers(tmp_path: Path) -> None:
    found = ask(tmp_path, version="580.173.02", install=["nvidia-driver-cuda", "nvidia-none", "nvidia-driver-pinning-580"])
    assert found["packages"] == {"nvidia-driver-cuda": "580.173.02-1", "nvidia-driver-pinning-580": "580-1"}
    assert found["missing"] == ["nvidia-none"]


def test_a_version_counts_only_when_every_package_has_it(tmp_path: Path) -> None:
    error = refused(tmp_path, branch="595")
    assert error.finding.code == "DriverVersionUnavailable"
    assert "nvidia-driver-cuda in 595.91.07" in error.finding.cause and "libnvidia-ml1 in 580.178.04" in error.finding.cause


def test_a_version_that_is_not_offered_names_the_nearest(tmp_path: Path) -> None:
    error = refused(tmp_path, version="580.1.2")
    assert error.finding.code == "DriverVersionUnavailable" and error.finding.details["available"] == ["580.178.04", "580.173.02"]
    assert "does not offer driver 580.1.2: of branch 580 it offers 580.178.04, 580.173.02" in error.finding.cause


def test_nothing_offered_at_all(tmp_path: Path) -> None:
    error = refused(tmp_path, install=["nvidia-none"])
    assert error.finding.code == "DriverVersionUnavailable" and "nvidia-none in no version" in error.finding.cause


def test_a_dependency_at_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {**empty_transaction(), "upgrade": [{"name": "libnvidia-cfg1", "full": "595.91.07-1"}, {"name": "nvidia-driver-pinning-580", "full": "580-1"}]}
    monkeypatch.setattr(FakeSources, "made", made)
    error = refused(tmp_path)
    assert error.finding.code == "DriverTransactionImpossible" and "libnvidia-cfg1 595.91.07-1" in error.finding.cause
    assert "pinning" not in error.finding.cause


def test_a_dependency_whose_version_is_none_of_a_driver_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {**empty_transaction(), "install": [{"name": "nvidia-kernel-common", "full": "20220217+3~deb12u1"}]}
    monkeypatch.setattr(FakeSources, "made", made)
    assert ask(tmp_path)["transaction"] == made


HEADERS: Offers = {"kernel-default-devel": offer("6.4.0-150600.23.70.2", "6.4.0-150600.23.53.2", "6.4.0-150600.23.53.1", "6.4.0-150600.23.5.1", own=False)}


@pytest.mark.parametrize(("kernels", "following", "versions"), [
    ({"6.4.0-150600.23.53-default": False}, "6.4.0-150600.23.53-default", ["6.4.0-150600.23.53.2", "6.4.0-150600.23.53.1"]),
    ({"6.4.0-150600.23.5-default": False, "6.4.0-150600.23.70-default": False}, "6.4.0-150600.23.5-default", ["6.4.0-150600.23.5.1"]),
    ({"6.4.0-150600.23.5-default": False, "6.4.0-150600.23.53-default": True}, "6.4.0-150600.23.53-default", ["6.4.0-150600.23.5.1"]),
    ({"6.4.0-150600.23.60-default": False, "6.4.0-150600.8-azure": False}, "6.4.0-150600.23.60-default", []),
])
def test_headers_of_suse_are_those_of_the_kernel_and_not_the_newest(kernels: dict[str, bool], following: str, versions: list[str]) -> None:
    kernel = {"next": following, "installed": [{"release": release, "headers": headers} for release, headers in kernels.items()]}
    assert [one.full for one in view.with_headers_of_kernels({**HEADERS, "dkms": offer("3")}, kernel)["kernel-default-devel"]] == versions


def test_zypper_takes_the_headers_of_the_kernel_and_misses_them_where_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(view._KINDS, "zypper", FakeSources)
    monkeypatch.setattr(FakeSources, "offers", lambda self, names: {**OFFERS, **HEADERS})
    wish = {"branch": "580", "version": "", "install": ["kernel-default-devel", "libnvidia-ml1"], "pins": PINS, "repository": None}
    for release, taken in (("6.4.0-150600.23.53-default", "6.4.0-150600.23.53.2"), ("6.4.0-150700.1-default", None)):
        kernel = {"next": release, "installed": [{"release": release, "headers": False}]}
        found = view.read_view(node(tmp_path), {"host": {"package_manager": "zypper"}, "kernel": kernel}, wish)
        assert found["packages"].get("kernel-default-devel") == taken
        assert found["missing"] == ([] if taken else ["kernel-default-devel"]), "role and check then say that the headers are missing"


def test_the_drivers_own_repository_comes_first() -> None:
    offers = {"x": [Offer("580.1.1-0ubuntu2", False), Offer("580.1.1-0ubuntu1", True), Offer("580.1.0-1", True)]}
    assert view.full_version(offers, "x", "580.1.1") == "580.1.1-0ubuntu1"
    assert view.full_version({"x": [Offer("2", False), Offer("1", False)]}, "x", None) == "2"


@pytest.mark.parametrize(("manager", "kind"), [("tdnf", "dnf"), (None, "apt"), ("apt", "dnf")])
def test_hosts_that_cannot_be_asked(tmp_path: Path, manager: str | None, kind: str) -> None:
    repository = {"kind": kind, "url": "http://x/", "key_url": "http://x/k", "fingerprint": FINGERPRINT, "distribution_repos": True}
    assert refused(tmp_path, manager=manager, repository=repository).finding.code == "DriverViewUnsupported"


def test_the_roles_own_locks_are_lifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lifted: list[Any] = []
    monkeypatch.setattr(FakeSources, "offers", lambda self, _names: lifted.append(self.lifted) or OFFERS)
    facts = {"host": {"package_manager": "apt"}, "record": {"held": ["nvidia-*-G07*"]}}
    view.read_view(node(tmp_path), facts, {"branch": "580", "install": ["libnvidia-ml1"], "pins": PINS})
    assert lifted == [frozenset(["nvidia-*-G07*"])]


def test_the_key_is_checked_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    repository = {"kind": "apt", "url": "http://x/", "key_url": f"file://{tmp_path}/key", "fingerprint": FINGERPRINT, "distribution_repos": True}
    assert ask(tmp_path, repository=repository)["key"] == KEY
    assert refused(tmp_path, repository={**repository, "fingerprint": "0" * 40}).finding.code == "DriverKeyMismatch"


MADISON = """nvidia-driver-cuda | 595.91.07-1 | https://mirror/cuda/repos/debian12/x86_64  Packages
nvidia-driver-cuda | 580.178.04-1 | https://mirror/cuda/repos/debian12/x86_64  Packages
nvidia-driver-cuda | 535.247.01-1~deb12u1 | http://deb.debian.org/debian bookworm/non-free amd64 Packages
      dkms | 3.0.10-8+deb12u1 | http://deb.debian.org/debian bookworm/main amd64 Packages
      dkms | 3.0.10-8+deb12u1 | http://deb.debian.org/debian bookworm/main Sources
"""


def test_what_madison_says() -> None:
    offers = parse_madison(MADISON, "https://mirror/cuda/repos/debian12/x86_64/")
    assert offers["nvidia-driver-cuda"] == [Offer("595.91.07-1", True), Offer("580.178.04-1", True), Offer("535.247.01-1~deb12u1", False)]
    assert offers["dkms"] == [Offer("3.0.10-8+deb12u1", False)]
    assert parse_madison("x | 1 | file:/repo/deb  Packages\n", "file:///repo/deb/")["x"] == [Offer("1", True)]


SIMULATION = """Reading package lists...
The following packages will be REMOVED:
  nvidia-dkms-580
Remv nvidia-dkms-580 [580.173.02-0ubuntu1]
Inst libnvidia-ml1 [580.173.02-1] (595.91.07-1 localhost [amd64]) []
Inst nvidia-driver-cuda [595.91.07-1] (580.178.04-1 localhost [amd64])
Inst make (4.3-4.1 Debian:12.12/stable [amd64])
Inst again [1.0] (1.0 x [amd64])
Conf libnvidia-ml1 (595.91.07-1 localhost [amd64])
"""


def test_what_a_simulation_says() -> None:
    assert parse_simulation(SIMULATION) == {
        "install": [{"name": "make", "full": "4.3-4.1"}], "upgrade": [{"name": "libnvidia-ml1", "full": "595.91.07-1"}],
        "downgrade": [{"name": "nvidia-driver-cuda", "full": "580.178.04-1"}], "remove": [{"name": "nvidia-dkms-580", "full": "580.173.02-0ubuntu1"}],
    }


STATUS = """Package: a
Status: install ok installed
Architecture: amd64
Version: 1

Package: b
Status: hold reinstreq half-installed
Architecture: amd64
Version: 1

Package: c
Status: install ok half-configured
Architecture: all
Version: 1
Description: Status: install ok unpacked

"""


def test_a_transaction_that_was_cut_off_counts_as_finished() -> None:
    text = finished_status(STATUS, ["Package: a\nStatus: install ok unpacked\nArchitecture: amd64\nVersion: 2\n", ""])
    assert "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2\n\n" in text and "Version: 2" in text and text.count("Package: a") == 1
    assert "Package: b\nStatus: hold ok not-installed" in text and "Package: c\nStatus: install ok installed" in text
    assert text.endswith("Description: Status: install ok unpacked\n\n") or "Description: Status: install ok unpacked\n\n" in text
    assert finished_status("", []) == ""


def sources(kind: type[Sources], host: FakeNode, folder: Path, with_repository: bool = True) -> Sources:
    repository = {"url": f"file://{folder}/repo/", "distribution_repos": True} if with_repository else None
    place = folder / "view"
    place.mkdir()
    return kind(host, place, repository, KEY, "580-open" if kind is DnfSources else None)


def code_of(call: Any, *args: Any) -> str:
    with pytest.raises(FleetError) as error:
        call(*args)
    return error.value.finding.code


def apt(tmp_path: Path, answers: dict[str, str | Ran]) -> tuple[FakeNode, Sources]:
    host = node(tmp_path / "root", {
        "/var/lib/dpkg/status": STATUS, "/etc/apt/sources.list": "deb http://d/ x main\n",
        "/etc/apt/sources.list.d/gpufleet-nvidia-driver.sources": "URIs: http://own",
        "/etc/apt/sources.list.d/x.sources": "URIs: http://x", "/etc/apt/preferences.d/nvidia-driver-pinning-580": "", "/etc/apt/preferences.d/site": "",
        "/var/lib/apt/lists/d_InRelease": "", "/var/lib/apt/lists/lock": "", "/var/lib/dpkg/updates/0001": "Package: z\nStatus: install ok unpacked\n",
    })
    host.answers.update(answers)
    return host, sources(AptSources, host, tmp_path)


def test_the_view_of_apt_copies_the_hosts_sources_but_not_what_the_role_writes(tmp_path: Path) -> None:
    host, asked = apt(tmp_path, {"apt-get": "", "apt-cache": MADISON})
    assert "dkms" in asked.offers(["dkms"])
    place = tmp_path / "view"
    assert sorted(path.name for path in (place / "sources.list.d").iterdir()) == ["000-sources.list.list", "002-x.sources", "gpufleet-view.list"]
    assert [path.name for path in (place / "preferences.d").iterdir()] == ["002-site"]
    assert sorted(path.name for path in (place / "lists").iterdir()) == ["d_InRelease", "partial"]
    assert (place / "sources.list.d/gpufleet-view.list").read_text() == f"deb [signed-by={place}/key.asc] file://{tmp_path}/repo/ /\n"
    assert "Package: z\nStatus: install ok installed" in (place / "status").read_text()
    assert [" update" in line for line in host.asked] == [True, True, False]
    assert all(f"Dir::State::Lists={place}/lists" in line for line in host.asked)
    asked.transaction({"nvidia-driver-cuda": "580.178.04-1"}, "580.178.04", PINS, ["old"])
    assert host.asked[-1].endswith("install nvidia-driver-cuda=580.178.04-1 old-")
    assert "Pin: version 580.178.04-*" in (place / "preferences.d/00-view").read_text()


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
def test_an_update_of_the_view_runs_nothing_that_the_host_has_apt_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = "".join(f'APT::Update::{name} {{"touch {tmp_path}/{name}";}};\n' for name in ("Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"))
    (tmp_path / "hooks.conf").write_text(hooks)
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "hooks.conf"))
    (tmp_path / "view").mkdir()
    assert AptSources(Node(tmp_path / "root"), tmp_path / "view", None, "", None).offers(["none-such"]) == {}
    assert [path.name for path in tmp_path.iterdir() if "Invoke" in path.name] == []


@pytest.mark.parametrize(("error", "code"), [
    ("W: GPG error: file:/repo/deb  InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 13B8\n"
     "E: The repository 'file:/repo/deb  InRelease' is not signed.", "DriverKeyMismatch"),
    ("E: Failed to fetch http://127.0.0.1:9/x/InRelease  Could not connect to 127.0.0.1:9", "DriverRepositoryUnreachable"),
])
def test_what_apt_cannot_read(tmp_path: Path, error: str, code: str) -> None:
    assert code_of(apt(tmp_path, {"apt-get": Ran(100, "", error)})[1].offers, ["x"]) == code


def test_sources_of_the_host_that_apt_cannot_read(tmp_path: Path) -> None:
    host = node(tmp_path / "root")
    host.answers["apt-get"] = Ran(100, "", "E: x")
    assert code_of(sources(AptSources, host, tmp_path, with_repository=False).offers, ["x"]) == "DriverRepositoryUnreachable"


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    asked = apt(tmp_path, {"apt-get": Ran(100, "", "E: x")})[1]
    asked.repository = {"url": "https://me:secret@mirror/cuda/", "distribution_repos": True}
    with pytest.raises(FleetError) as error:
        asked.offers(["x"])
    assert "https://mirror/cuda/" in error.value.finding.cause and "secret" not in str(error.value.finding.as_dict())
    assert "https://me:secret@mirror/cuda/" in (tmp_path / "view/sources.list.d/gpufleet-view.list").read_text()
    repository = {"kind": "apt", "url": "https://me:secret@mirror/", "key_url": f"file://{tmp_path}/key", "fingerprint": FINGERPRINT}
    (tmp_path / "key").write_text(KEY)
    assert "secret" not in str(refused(tmp_path, branch="620", repository=repository).finding.as_dict())


def test_a_transaction_that_apt_does_not_make(tmp_path: Path) -> None:
    said_by_apt = "bla\nThe following packages have unmet dependencies:\n a : Depends: b but it is not installable\n"
    asked = apt(tmp_path, {"apt-get": "", "apt-cache": ""})[1]
    asked.offers([])
    asked.node.answers["apt-get"] = Ran(100, said_by_apt, "E: Unable to correct problems, you have held broken packages.")  # type: ignore[attr-defined]
    with pytest.raises(FleetError) as error:
        asked.transaction({}, "580.178.04", PINS, [])
    assert error.value.finding.code == "DriverTransactionImpossible" and "way to install driver 580.178.04: a : Depends: b but" in error.value.finding.cause


def dnf(tmp_path: Path, answer: dict[str, Any] | Ran) -> Sources:
    host = node(tmp_path / "root", {"/etc/yum.repos.d/a.repo": "[a]", "/etc/yum.repos.d/gpufleet-nvidia-driver.repo": "[own]",
        "/var/lib/dnf/history.sqlite": "x"})
    (tmp_path / "repo/repodata").mkdir(parents=True)
    host.answers["/usr/bin/python3"] = answer if isinstance(answer, Ran) else json.dumps(answer)
    return sources(DnfSources, host, tmp_path)


def test_the_view_of_dnf(tmp_path: Path) -> None:
    asked = dnf(tmp_path, {"offers": {"x": [["3:1-1", True]]}, "transaction": empty_transaction()})
    (tmp_path / "repo/repodata/repomd.xml.asc").write_text("x")
    assert asked.offers(["x"]) == {"x": [Offer("3:1-1", True)]}
    assert sorted(path.name for path in (tmp_path / "view/repos").iterdir()) == ["a.repo", "gpufleet-view.repo"]
    assert "repo_gpgcheck=1" in (tmp_path / "view/repos/gpufleet-view.repo").read_text() and (tmp_path / "view/state/history.sqlite").exists()
    assert asked.transaction({"x": "3:1-1"}, "1", PINS, []) == empty_transaction()


def test_headers_are_asked_for_by_name_and_release(tmp_path: Path) -> None:
    headers = "kernel-devel-5.14.0-611.5.1.el9_7.x86_64"
    asked = dnf(tmp_path, {"offers": {headers: [["", False]]}})
    assert view.full_version(asked.offers([headers, "nvidia-driver-cuda"]), headers, None) == ""
    (question,) = asked.node.questions  # type: ignore[attr-defined]
    assert json.loads(question)["versioned"] == [headers]


class Package(NamedTuple):
    name: str
    version: str
    release: str
    epoch: int = 0
    arch: str = "x86_64"
    reponame: str = "a"


class FakeDnf:
    """As much of dnf's API as the questions take: one package of kernel headers, and what is installed."""

    def __init__(self) -> None:
        self.subject, self.sack, self.installed = self, self, []
        self.known = Package("kernel-devel", "5.14.0", "611.el9")

    def query(self) -> FakeDnf:
        return self

    def available(self) -> FakeDnf:
        return self

    def filter(self, name: Sequence[str]) -> list[Package]:
        return [self.known] if self.known.name in name else []

    def Subject(self, spec: str) -> FakeDnf:
        self.spec = spec
        return self

    def get_best_query(self, _sack: Any) -> FakeDnf:
        return self

    def __iter__(self) -> Iterator[Package]:
        return iter([self.known] if self.spec == "kernel-devel-5.14.0-611.el9.x86_64" else [])


def test_a_name_with_a_release_is_offered_where_dnf_knows_it_so() -> None:
    there, not_there = "kernel-devel-5.14.0-611.el9.x86_64", "kernel-devel-5.14.0-1.el9.x86_64"
    question = {"names": [there, not_there, "kernel-devel", "nvidia-none"], "versioned": [there, not_there], "arch": "x86_64", "repository": "a"}
    fake_dnf = FakeDnf()
    assert dnf_questions._offers(fake_dnf, fake_dnf, question) == {"kernel-devel": [["5.14.0-611.el9", True]], there: [["", False]]}


def test_an_index_without_signature_is_taken_for_packages_are_checked_later() -> None:
    assert "repo_gpgcheck=0" in repo_file("http://x", "/k", False) and "gpgcheck=1" in repo_file("http://x", "/k", False)


def test_what_libraries_of_dnf_write_before_the_answer(tmp_path: Path) -> None:
    assert dnf(tmp_path, Ran(0, 'Repository a is listed twice\n{"offers": {}}', "")).offers(["x"]) == {}
    assert code_of(dnf(tmp_path / "2", Ran(0, "no answer", "")).offers, ["x"]) == "DriverCommandFailed"


@pytest.mark.parametrize(("answer", "code"), [
    ({"error": "No module named 'dnf'", "kind": "unsupported"}, "DriverViewUnsupported"), ({"error": "Cannot download repomd.xml",
    "kind": "repository"}, "DriverRepositoryUnreachable"),
    ({"error": "repomd.xml GPG signature verification error: Bad GPG signature", "kind": "repository"}, "DriverKeyMismatch"),
    ({"error": "missing groups or modules: nvidia-driver:580-open", "kind": "solver"}, "DriverVersionUnavailable"), (Ran(1, "", "Traceback"),
    "DriverCommandFailed"),
])
def test_what_dnf_cannot_answer(tmp_path: Path, answer: Any, code: str) -> None:
    assert code_of(dnf(tmp_path, answer).offers, ["x"]) == code


def test_a_transaction_that_dnf_does_not_make(tmp_path: Path) -> None:
    assert code_of(dnf(tmp_path, {"error": "nothing provides dkms", "kind": "solver"}).transaction, {}, "1", PINS, []) == "DriverTransactionImpossible"


SEARCH = """<?xml version='1.0'?>
<stream>
<message type="info">Loading repository data...</message>
<search-result version="0.0">
<solvable-list>
<solvable status="other-version" name="nvidia-compute-G06" kind="package" edition="580.178.04-1" arch="x86_64" repository="gpufleet-view"/>
<solvable status="installed" name="nvidia-compute-G06" kind="package" edition="580.173.02-1" arch="x86_64" repository="(System Packages)"/>
<solvable status="not-installed" name="nvidia-compute-G06" kind="package" edition="580.173.02-1" arch="x86_64" repository="SLE"/>
</solvable-list>
</search-result>
</stream>
"""
SUMMARY = """<?xml version='1.0'?>
<stream>
<install-summary download-size="17135" space-usage-diff="0" packages-to-change="3">
<to-upgrade>
<solvable type="package" name="nvidia-compute-G06" edition="580.178.04-1" arch="x86_64" edition-old="580.173.02-1" arch-old="x86_64" summary="x">
<description>x</description></solvable>
</to-upgrade>
<to-downgrade-change-vendor><solvable type="package" name="b" edition="1-1" arch="x86_64"/></to-downgrade-change-vendor>
<to-install><solvable type="package" name="a" edition="1-1" arch="x86_64"/><solvable type="pattern" name="p" edition="1-1"/></to-install>
<to-remove><solvable type="package" name="c" edition="1-1" arch="x86_64"/></to-remove>
</install-summary>
<prompt id="0"><text>Continue?</text></prompt>
</stream>
"""
PROBLEM = """<?xml version='1.0'?>
<stream><message type="info">Resolving package dependencies...</message><prompt id="1"><description>Problem: x conflicts with y
 Solution 1: deinstallation of x</description><text>Choose from above solutions by number or cancel</text></prompt></stream>
"""


def test_what_zypper_says() -> None:
    assert parse_search(SEARCH) == {"nvidia-compute-G06": [Offer("580.178.04-1", True), Offer("580.173.02-1", False)]}
    assert parse_summary(SUMMARY) == {
        "install": [{"name": "a", "full": "1-1"}], "upgrade": [{"name": "nvidia-compute-G06", "full": "580.178.04-1"}],
        "downgrade": [{"name": "b", "full": "1-1"}], "remove": [{"name": "c", "full": "1-1"}],
    }
    assert "Problem: x conflicts with y Solution 1" in said(Ran(4, PROBLEM, "")) and said(Ran(1, "no xml", "")) == "no xml"


def test_locks_of_others_stay() -> None:
    text = "\ntype: package\nmatch_type: glob\nsolvable_name: curl\n\n\ntype: package\nsolvable_name: nvidia-*-G07*\n"
    assert other_locks(text, ["nvidia-*-G07*"]) == "type: package\nmatch_type: glob\nsolvable_name: curl\n\n"


def zypper(tmp_path: Path, answers: dict[str, str | Ran], signed: bool = True) -> Sources:
    host = node(tmp_path / "root", {"/etc/zypp/zypp.conf": "[main]\nx = y\n", "/etc/zypp/repos.d/gpufleet-nvidia-driver.repo": "",
        "/etc/zypp/repos.d/sle.repo": ""})
    (tmp_path / "repo/repodata").mkdir(parents=True)
    (tmp_path / "repo/repodata/repomd.xml").write_text("x")
    if signed:
        (tmp_path / "repo/repodata/repomd.xml.asc").write_text("x")
    host.answers.update(answers)
    return sources(ZypperSources, host, tmp_path)


def test_the_view_of_zypper(tmp_path: Path) -> None:
    asked = zypper(tmp_path, {"gpg": "", "zypper": SEARCH})
    assert asked.offers(["x"]) == parse_search(SEARCH)
    assert sorted(path.name for path in (tmp_path / "view/repos").iterdir()) == ["gpufleet-view.repo", "sle.repo"]
    assert (tmp_path / "view/zypp.conf").read_text() == f"[main]\nx = y\n\nlocksfile.path = {tmp_path}/view/locks\n"
    asked.node.answers["zypper"] = SUMMARY  # type: ignore[attr-defined]
    assert asked.transaction({"nvidia-compute-G06": "580.178.04-1"}, "580.178.04", PINS, ["old"]) == parse_summary(SUMMARY)
    assert asked.node.asked[-1].endswith(" nvidia-compute-G06=580.178.04-1 !old")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("answers", "code"), [
    ({"gpg --homedir": "", "zypper": Ran(4, "", "x")}, "DriverRepositoryUnreachable"), ({"zypper": SEARCH}, "DriverViewUnsupported"),
])
def test_what_zypper_cannot_read(tmp_path: Path, answers: dict[str, str | Ran], code: str) -> None:
    assert code_of(zypper(tmp_path, answers).offers, ["x"]) == code


def test_an_index_by_another_key(tmp_path: Path) -> None:
    asked = zypper(tmp_path, {"zypper": SEARCH, "gpg": ""})
    home = tmp_path / "view/gnupg"
    gpg = f"gpg --homedir {home} --batch --no-autostart --trust-model always"
    asked.node.answers.update({"gpg": "", f"{gpg} --import": ""})  # type: ignore[attr-defined]
    asked.node.answers.pop("gpg")  # type: ignore[attr-defined]
    asked.node.answers[f"{gpg} --verify"] = Ran(2, "", "gpg: Can't check signature: No public key")  # type: ignore[attr-defined]
    assert code_of(asked.offers, ["x"]) == "DriverKeyMismatch"


def test_a_mirror_without_signatures_needs_no_gpg(tmp_path: Path) -> None:
    assert zypper(tmp_path, {"zypper": SEARCH}, signed=False).offers(["x"])


def test_a_transaction_that_zypper_does_not_make(tmp_path: Path) -> None:
    assert code_of(zypper(tmp_path, {"zypper": Ran(4, PROBLEM, "")}).transaction, {}, "1", PINS, []) == "DriverTransactionImpossible"
