# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""`python -m tests.packages publish --sandbox NAME`: fills the package server of a sandbox with stub packages and prints, as JSON, what is where."""
from __future__ import annotations

import argparse
import json
import os
import sys

from sandbox.artifacts import ArtifactError, Progress, Settings
from sandbox.cli import DEFAULT_NAME
from sandbox.environment import complete_path
from sandbox.errors import SandboxError
from sandbox.nodes import record
from sandbox.spec import SYSTEMS
from sandbox.state import RunState

from . import keys
from .publish import publish
from .table import VERSIONS


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.packages", description=__doc__)
    command = parser.add_subparsers(required=True, metavar="COMMAND").add_parser("publish", help="publish stub packages in a sandbox")
    command.add_argument("--sandbox", default=os.environ.get("GPUFLEET_SANDBOX", DEFAULT_NAME), help="its name (default: %(default)s)")
    command.add_argument("--versions", default=",".join(VERSIONS), help="driver versions (default: %(default)s)")
    command.add_argument("--systems", default="", help="for which systems (default: those of the sandbox's nodes)")
    command.add_argument("--key", choices=keys.NAMES, default=keys.NAMES[0], help="by which key the repositories are signed (default: %(default)s)")
    options = parser.parse_args(arguments)
    os.umask(0o022)
    os.environ["PATH"] = complete_path(os.environ.get("PATH", ""))
    try:
        settings = Settings.from_environment()
        state = RunState(settings.cache, options.sandbox)
        systems = list(filter(None, options.systems.split(","))) or _systems_of(state)
        unknown = sorted(set(systems) - set(SYSTEMS))
        if unknown:
            raise SandboxError(f"there is no system {', '.join(unknown)}; known are {', '.join(SYSTEMS)}.")
        answer = publish(state, settings, Progress.to_terminal(), options.versions.split(","), systems, options.key)
    except (ArtifactError, SandboxError) as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=2))
    return 0


def _systems_of(state: RunState) -> list[str]:
    specs = [record.load(path.parent).spec for path in sorted(state.nodes.glob("*/node.json"))]
    return sorted({spec.get("system", SYSTEMS[0]) for spec in specs})


if __name__ == "__main__":
    sys.exit(main())
