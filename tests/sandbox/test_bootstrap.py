# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""scripts/bootstrap.sh: which Python it would install, by the words of `apt-cache policy`."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bootstrap.sh"


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ({"python3": "3.11.2-1+b1", "python3-venv": "3.11.2-1+b1"}, "python3"),  # Debian 12
        ({"python3": "3.13.5-1", "python3-venv": "3.13.5-1"}, "python3"),  # Debian 13
        ({"python3": "3.12.3-0ubuntu2", "python3-venv": "3.12.3-0ubuntu2"}, "python3"),  # Ubuntu 24.04
        (
            {"python3": "3.10.6-1~22.04.1", "python3-venv": "3.10.6-1~22.04.1", "python3.11": "3.11.0~rc1-1~22.04", "python3.11-venv": "3.11.0~rc1-1~22.04"},
            "python3.11",
        ),  # Ubuntu 22.04
        ({"python3": "3.10.6-1~22.04.1", "python3-venv": "3.10.6-1~22.04.1", "python3.11": "3.11.0~rc1-1~22.04", "python3.11-venv": "(none)"}, ""),
        ({"python3": "3.9.2-3", "python3-venv": "3.9.2-3"}, ""),  # Debian 11: nothing is installed in vain
    ],
)
def test_the_python_that_would_be_installed(candidates: dict[str, str], chosen: str, tmp_path: Path) -> None:
    cases = "".join(f"{name}) printf '{name}:\\n  Installed: (none)\\n  Candidate: {version}\\n' ;; " for name, version in candidates.items())
    program = tmp_path / "apt-cache"
    program.write_text(f"#!/bin/sh\ncase $2 in {cases} esac\n")
    program.chmod(0o755)
    function = re.search(r"^packaged_python\(\) \{\n.*?^\}\n", SCRIPT.read_text(), re.DOTALL | re.MULTILINE)
    assert function is not None
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-euc", f"{function.group()}packaged_python || true"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == chosen and done.stderr == ""
