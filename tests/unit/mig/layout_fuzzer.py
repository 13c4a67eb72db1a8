# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Random layout files, ours and nvidia-mig-parted's: good ones, good ones with something wrong, and junk. The same seed gives the same files."""
from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

_PROFILES = ("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "1g.24gb", "1g.24gb-me", "1g.24gb+me.all", "2g.48gb", "4g.96gb",
             "1g.6gb", "2g.12gb", "1g", "2g", "3g", "1g+me", "1c.3g.40gb", "2c.3g.40gb", "2c.4g.40gb", "1c.2g.20gb", "MIG 3G.40GB", "3g.39gb", "9", "19")
_INTENTS = ("balanced", "whole", "all-1g", "all-2g", "all-1g.10gb", "all-1c.3g.40gb", "all-1g+me", "all-9g")
_MATCHES: tuple[Any, ...] = ("all", {"index": 0}, {"index": [0, 1, 2]}, {"product": "*H100*"}, {"product": ["*rtx*", "*A30*"]}, {"uuid": "GPU-h100-0"},
                             {"pci_bus_id": "0000:41:00.0"}, {"pci_device_id": "0x233010DE"}, {"minor": 3, "product": "*"}, {"index": 7},
                             {"product": "*L40S"})
_WORDS = ("", " ", "all", "version", "v1", "enabled", "match", "instances", "profile", "count", "start", "mig-configs", "devices", "0x233010DE", "-1",
          "1e3", "~", "²", "٣g.40gb",
          "3g.40gb\n7g.80gb", "\x00", "\x1b[31m", "\u202e", "\ud800", "{{ lookup('pipe', 'id') }}", "../../etc/passwd", "%s%n", "{0.__class__}")
_LONGEST = 100_000


class LayoutFuzzer:
    """Draws layout files from ``seed``."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def options(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield ``count`` sets of the options of mig_layout that say what is wanted, as they come out of YAML."""
        for _number in range(count):
            ours = self._draw.random() < 0.5
            document = self._layouts() if ours else self._parted()
            for _mutation in range(self._draw.choice((0, 0, 1, 1, 2))):
                document = self._mutated(document)
            if self._draw.random() < 0.05:
                document = self._junk(4)
            selected = self._draw.choice((None, *["mine"] * 8, "other", self._text()))
            yield {
                "layouts": document if ours else [], "mig_parted_config": None if ours else document, "mig_parted_selected": selected,
                "mig_parted_source": "fuzzed.yaml", "unlisted": self._draw.choice(("keep", "disable")),
            }

    # -- good ones ---------------------------------------------------------------------------------------------------------------------------------

    def _layouts(self) -> list[Any]:
        return [self._entry() for _number in range(self._draw.choice((1, 1, 1, 2, 3)))]

    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"match": copy.deepcopy(self._draw.choice(_MATCHES))}
        mode = self._draw.choice(("enabled", "enabled", "enabled", None, "disabled", "unmanaged"))
        if mode is not None:
            entry["mode"] = mode
        if mode in ("enabled", None):
            entry["instances"] = self._draw.choice((self._counts, self._list, lambda: self._draw.choice(_INTENTS), dict))()
        return entry

    def _counts(self) -> dict[Any, Any]:
        return {self._draw.choice(_PROFILES): self._draw.choice((0, 1, 1, 2, 3, 4, 7, "2", 64)) for _number in range(self._draw.choice((1, 1, 2, 3)))}

    def _list(self) -> list[Any]:
        return [self._request() for _number in range(self._draw.choice((1, 2, 3, 5)))]

    def _request(self) -> Any:
        profile = self._draw.choice(_PROFILES)
        extra = self._draw.choice(({}, {}, {"start": self._draw.randrange(8)}, {"count": self._draw.randrange(5)}, {"compute_instances": [2, 1]},
                                   {"compute_instances": ["1c", "1c"]}))
        return profile if self._draw.random() < 0.3 else {"profile": profile, **extra}

    def _parted(self) -> dict[str, Any]:
        configs = {"mine": [self._spec() for _number in range(self._draw.choice((1, 1, 2, 4)))]}
        if self._draw.random() < 0.3:
            configs["other"] = [self._spec()]
        return {"version": "v1", "mig-configs": configs}

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"devices": self._draw.choice(("all", [0], [0, 1], [3], []))}
        if self._draw.random() < 0.3:
            spec["device-filter"] = self._draw.choice(("0x233010DE", ["0x2BB510DE", "0x233010DE:0x16C110DE"], 0x233010DE))
        spec["mig-enabled"] = self._draw.random() < 0.8
        if spec["mig-enabled"]:
            spec["mig-devices"] = self._counts()
        return spec

    # -- wrong ones --------------------------------------------------------------------------------------------------------------------------------

    def _mutated(self, document: Any) -> Any:
        """Return the document with one thing changed, somewhere."""
        if not isinstance(document, (dict, list)) or not document or self._draw.random() < 0.03:
            return self._draw.choice((self._scalar, lambda: self._junk(2), lambda: [document], lambda: {self._key(): document}, lambda: None))()
        if isinstance(document, list):
            items = list(document)
            place = self._draw.randrange(len(items))
            items[place] = self._mutated(items[place])
            return items + [items[place]] * (self._draw.random() < 0.1) if self._draw.random() < 0.9 else items[:place]
        key = self._draw.choice([name for name, value in document.items() for _chance in range(6 if value and isinstance(value, (dict, list)) else 1)])
        change = self._draw.random()
        if change < 0.04:
            return {name: value for name, value in document.items() if name != key}
        if change < 0.15:
            return {(self._key() if name == key else name): value for name, value in document.items()}
        if change < 0.19:
            return {**document, self._key(): self._scalar()}
        return {**document, key: self._mutated(document[key])}

    def _key(self) -> Any:
        return self._draw.choice((self._text, self._text, self._number, lambda: None, lambda: True, lambda: (1, "g")))()

    def _scalar(self) -> Any:
        return self._draw.choice((self._text, self._text, self._number, lambda: None, lambda: True, lambda: b"\xff3g.40gb", lambda: {"1g"}, dict))()

    def _number(self) -> Any:
        return self._draw.choice((0, 1, -1, 65, 1 << 15, 1 << 64, 10**5000, 1.0, -0.0, 1e308, float("nan"), float("inf"), 0x233010DE))

    def _text(self) -> str:
        word = self._draw.choice((*_WORDS, *_PROFILES, *_INTENTS))
        shape = self._draw.random()
        if shape < 0.1:
            return (word or "9") * self._draw.choice((50, 2000, _LONGEST // 10))
        if shape < 0.2:
            return "9" * self._draw.choice((5, 400, 5000)) + self._draw.choice(("g.40gb", "g", "c.3g.40gb", ""))
        if shape < 0.4 and word:
            place = self._draw.randrange(len(word))
            return word[:place] + chr(self._draw.choice((9, 10, 48, 43, 46, 99, 0xB2, 0x20AC, 0x1F4A9))) + word[place + 1:]
        return word

    def _junk(self, depth: int) -> Any:
        shape = self._draw.random()
        if depth == 0 or shape < 0.3:
            return self._scalar()
        if shape < 0.35:
            return nested(self._draw.choice((50, 3000)))
        if shape < 0.65:
            return [self._junk(depth - 1) for _number in range(self._draw.randrange(4))]
        return {self._key(): self._junk(depth - 1) for _number in range(self._draw.randrange(4))}


def bomb(levels: int) -> list[Any]:
    """Return nine times the same list of nine times the same list: what a few lines of YAML aliases unfold to."""
    value: list[Any] = ["1g.10gb"] * 9
    for _level in range(levels - 1):
        value = [value] * 9
    return value


def nested(depth: int) -> Any:
    """Return a list in a list in a list, deeper than Python follows by recursion when ``depth`` is above a thousand."""
    value: Any = "1g.10gb"
    for level in range(depth):
        value = [value] if level % 2 else {"match": value}
    return value
