# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write every role's README.md and the reference in docs/variables.md from the roles' argument specs.

``--check`` writes nothing and fails, naming the files, when one is not what the argument specs say.
"""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from generated import write_or_check

ROOT = Path(__file__).resolve().parent.parent
ROLES = ROOT / "roles"
VARIABLES = ROOT / "docs" / "variables.md"
MARKER = "<!-- Below this line: made by scripts/role_readmes.py from roles/*/meta/argument_specs.yml -->\n"


def markdown(text: str) -> str:
    """Return text with Ansible's semantic markup (V(), O(), C(), P()) as Markdown."""
    text = re.sub(r"P\(([\w.]+)#role\)", lambda found: f"[{found[1].split('.')[-1]}](../{found[1].split('.')[-1]}/README.md)", text)
    return re.sub(r"[VOC]\(([^()]*(?:\([^()]*\))?[^()]*)\)", r"`\1`", text)


def paragraphs(value: str | list[str]) -> list[str]:
    """Return a description, which may be a text or a list of texts, as a list of Markdown texts."""
    return [markdown(" ".join(text.split())) for text in ([value] if isinstance(value, str) else value)]


def kind(option: dict[str, Any]) -> str:
    """Return the type of an option as a reader wants it: with the type of its elements or its choices."""
    if "choices" in option:
        return " or ".join(f"`{choice}`" for choice in option["choices"])
    return f"{option['type']} of {option['elements']}" if "elements" in option else option["type"]


def default(option: dict[str, Any]) -> str:
    """Return the default of an option as code."""
    if option.get("required"):
        return "required"
    value = option.get("default")
    return "`null`" if value is None else f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def rows(options: dict[str, dict[str, Any]], prefix: str = "") -> list[str]:
    """Return table rows, one per option, those of nested options (``parent[].name``) below their parent."""
    lines = []
    for name, option in options.items():
        cells = [f"`{prefix}{name}`", kind(option), default(option), " ".join(paragraphs(option["description"]))]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines += rows(option.get("options", {}), f"{prefix}{name}[]." if "elements" in option else f"{prefix}{name}.")
    return lines


def table(spec: dict[str, Any]) -> str:
    """Return the table of a role's variables."""
    return "\n".join(["| variable | type | default | meaning |", "| --- | --- | --- | --- |", *rows(spec["options"])]) + "\n"


def readme(name: str, spec: dict[str, Any]) -> str:
    """Return the README.md of one role."""
    about = "\n".join(f"- {text}" for text in paragraphs(spec["description"]))
    return (
        f"<!-- Made by scripts/role_readmes.py from meta/argument_specs.yml -->\n# gpufleet.dra.{name}\n\n{markdown(spec['short_description'])}.\n\n{about}\n\n"
        f"## Variables\n\n{table(spec)}\n## Example\n\n```yaml\n{spec['examples']}```\n"
    )


def documents() -> dict[Path, str]:
    """Return every generated file with the content that it should have."""
    wanted, sections = {}, []
    for role in sorted(path for path in ROLES.iterdir() if path.is_dir()):
        spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]["main"]
        wanted[role / "README.md"] = readme(role.name, spec)
        sections.append(f"\n## Role {role.name}\n\n{table(spec)}".replace("(../", "(../roles/"))
    head = VARIABLES.read_text(encoding="utf-8").partition(MARKER)[0]
    wanted[VARIABLES] = head + MARKER + "".join(sections)
    return wanted


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, documents()))
