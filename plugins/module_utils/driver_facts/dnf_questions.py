# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks dnf through its Python API. Runs as a program of its own under the Python that has dnf, which may be another than Ansible's; so it imports nothing
of this collection. Reads one JSON question from standard input, writes one JSON answer to standard output.

Module streams are the reason for the API: dnf keeps the enabled ones in /etc/dnf/modules.d and has no option for another folder, but a program may enable
one for itself alone.
"""
from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer the question: ``offers`` or ``transaction``, or an ``error`` with its ``kind`` (unsupported, repository, solver)."""
    question = json.load(sys.stdin)
    try:
        import dnf
        import dnf.exceptions
        import dnf.module.module_base
        import dnf.subject
    except ImportError as error:
        answer: dict[str, Any] = {"error": str(error), "kind": "unsupported"}
    else:
        try:
            answer = _answer(dnf, question)
        except dnf.exceptions.RepoError as error:
            answer = {"error": str(error), "kind": "repository"}
        except dnf.exceptions.Error as error:
            answer = {"error": str(error), "kind": "solver"}
    sys.stdout.write("\n" + json.dumps(answer))


def _answer(dnf: Any, question: dict[str, Any]) -> dict[str, Any]:
    base = dnf.Base()
    conf = base.conf
    conf.read(priority=dnf.conf.PRIO_MAINCONFIG)
    conf.substitutions.update_from_etc("/", varsdir=conf.varsdir)
    if not conf.substitutions.get("releasever"):  # no package of the host says which release it is
        conf.substitutions["releasever"] = question["release"]
    conf.cachedir, conf.persistdir, conf.logdir = question["cachedir"], question["persistdir"], question["logdir"]
    conf.reposdir = question["reposdir"]
    conf.install_weak_deps = False
    conf.best = True
    # A reset before would need a transaction of its own.
    conf.module_stream_switch = True
    conf.skip_if_unavailable = False
    base.read_all_repos()
    base.fill_sack(load_system_repo=True)
    if question["stream"]:
        dnf.module.module_base.ModuleBase(base).enable([f"nvidia-driver:{question['stream']}"])
    if question["ask"] == "offers":
        return {"offers": _offers(dnf, base, question)}
    return {"transaction": _transaction(dnf, base, question)}


def _offers(dnf: Any, base: Any, question: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """Return the offers by name. Those of ``versioned`` have their version in the name asked for already, and one offer without a version."""
    found: dict[str, list[list[Any]]] = {}
    for package in sorted(base.sack.query().available().filter(name=question["names"]), reverse=True):
        if package.arch in ("noarch", question["arch"]):
            found.setdefault(package.name, []).append([_full(package), package.reponame == question["repository"]])
    for spec in question["versioned"]:
        if list(dnf.subject.Subject(spec).get_best_query(base.sack).available()):
            found[spec] = [["", False]]
    return found


def _transaction(dnf: Any, base: Any, question: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    pinned = base.sack.query().available().filter(name__glob=question["pins"])
    base.sack.add_excludes(pinned.filter(pkg=[package for package in pinned if package.name not in question["own_version"] and not _is(package, question)]))
    for name in question["remove"]:
        base.remove(name)
    for name, full in question["specs"].items():
        base.install(f"{name}-{full}" if full else name, strict=True)
    base.resolve(allow_erasing=True)
    kinds = {
        dnf.transaction.PKG_INSTALL: "install", dnf.transaction.PKG_UPGRADE: "upgrade", dnf.transaction.PKG_DOWNGRADE: "downgrade",
        dnf.transaction.PKG_REMOVE: "remove", dnf.transaction.PKG_OBSOLETED: "remove",
    }
    answer: dict[str, list[dict[str, str]]] = {kind: [] for kind in ("install", "upgrade", "downgrade", "remove")}
    for item in base.transaction:
        if item.action in kinds:
            answer[kinds[item.action]].append({"name": item.pkg.name, "full": _full(item.pkg)})
    return answer


def _is(package: Any, question: dict[str, Any]) -> bool:
    """Return whether a package has the driver's version; SUSE and others put more behind it."""
    version: str = package.version
    return version == question["version"] or version.startswith(f"{question['version']}_")


def _full(package: Any) -> str:
    """Return [epoch:]version-release, without an epoch of 0."""
    return f"{package.epoch}:{package.version}-{package.release}" if package.epoch else f"{package.version}-{package.release}"


if __name__ == "__main__":
    main()
