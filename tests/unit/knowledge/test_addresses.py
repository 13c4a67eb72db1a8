# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""User names and passwords in addresses."""
from __future__ import annotations

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.addresses import credentials, sealed, user_and_password, without_credentials


@pytest.mark.parametrize(("address", "found", "both", "shown"), [
    ("https://me:secret@mirror/cuda", "me:secret", ("me", "secret"), "https://mirror/cuda"),
    ("https://me:p%40s%C3%B6@mirror/", "me:p%40s%C3%B6", ("me", "p@sö"), "https://mirror/"),
    ("HTTP://me:p@s@mirror/", "me:p@s", ("me", "p@s"), "HTTP://mirror/"), ("https://token@mirror/", "token", ("token", ""), "https://mirror/"),
    ("https://mirror/a@b", "", ("", ""), "https://mirror/a@b"), ("https://mirror:8443/", "", ("", ""), "https://mirror:8443/"), ("", "", ("", ""), ""),
])
def test_credentials_are_found_and_taken_out(address: str, found: str, both: tuple[str, str], shown: str) -> None:
    assert (credentials(address), user_and_password(address), without_credentials(address)) == (found, both, shown)
    assert without_credentials(f"Status 404 for {address}x, twice {address}x") == f"Status 404 for {shown}x, twice {shown}x"


@pytest.mark.parametrize("text", ["baseurl=https://me:{}@mirror/\n", "baseurl=https://mirror/\nusername=me\npassword={}\n", "Types: deb\nURIs: https://{}@mirror/\n"])
def test_a_sealed_text_tells_only_whether_it_is_the_same(text: str) -> None:
    one = sealed(text.format("secret"))
    assert "secret" not in one and "//me:" not in one and "name=me" not in one and "mirror/" in one
    assert one == sealed(text.format("secret")) != sealed(text.format("other"))
    assert one.count("\n") == text.count("\n")


def test_a_text_without_credentials_is_not_changed() -> None:
    text = "[x]\nbaseurl=https://mirror/\n# mail me@example.com: https://mirror/a@b\ngpgkey=file:///etc/pki/key\n"
    assert sealed(text) == text
