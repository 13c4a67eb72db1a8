#!/bin/sh
# Make the private environment of this checkout: .build/venv and .build/collections.
#
# Everything heavy lies in the cache folder under a name made of its content, so a second clone finds it there. The newest Python >= 3.11
# is taken; 3.11 means ansible-core 2.19, 3.12 and later mean ansible-core 2.21. Run again, it only looks.
set -eu

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # root may come without these, as after `su`
export PATH HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cache=${GPUFLEET_SANDBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpufleet-dra}
export PIP_CACHE_DIR="$cache/pip" PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*" >&2; }

# A Python counts when it runs (version manager shims may not) and can make environments.
usable() {
    "$1" -c 'import sys, venv, ensurepip; raise SystemExit(sys.version_info < (3, 11) or sys.version_info >= (3, 15))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        usable "$PYTHON" || { say "PYTHON=$PYTHON is not a Python 3.11 to 3.14 with venv and ensurepip."; return 1; }
        printf '%s\n' "$PYTHON"
        return 0
    fi
    for minor in 14 13 12 11; do
        for candidate in "python3.$minor" "$HOME"/.pyenv/versions/3."$minor".*/bin/python3."$minor"; do
            if usable "$candidate"; then printf '%s\n' "$candidate"; return 0; fi
        done
    done
    if usable python3; then printf 'python3\n'; return 0; fi
    return 1
}

# Print the newest of the distribution's Pythons that is new enough: "python3" where that is one, else for example "python3.11".
packaged_python() {
    for package in python3 python3.14 python3.13 python3.12 python3.11; do
        candidate=$(LC_ALL=C apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: //p')
        case $candidate in 3.1[1-4].* | 3.1[1-4]-*) ;; *) continue ;; esac
        LC_ALL=C apt-cache policy "$package-venv" 2>/dev/null | grep -q '^  Candidate: 3' || continue
        printf '%s\n' "$package"
        return 0
    done
    return 1
}

# Changes the machine only when that will do.
install_python() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    package=$(packaged_python) || { apt-get update -qq && package=$(packaged_python); } || return 1
    say "No Python >= 3.11 found: installing $package and $package-venv with apt-get ..."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" "$package-venv" >/dev/null
}

python=$(find_python) || { install_python && python=$(find_python); } || {
    say "gpufleet.dra needs Python 3.11 or newer with venv to run from a checkout, and none was found."
    say "Install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.12 ..."
    exit 1
}

version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
case $version in 3.11.*) lock="$root/requirements/dev-py311.txt" ;; *) lock="$root/requirements/dev-py312.txt" ;; esac
bundle="$root/requirements/collections.txt"
key=$(cat "$lock" | sha256sum | cut -c1-12)
venv="$cache/venv/py$version-$key"
collections="$cache/collections/$(cat "$bundle" "$0" | sha256sum | cut -c1-12)"

# Two at once would each remove the other's half-made folders.
mkdir -p "$cache"
exec 9>"$cache/bootstrap.lock"
flock 9

# An upgrade of the distribution's Python leaves an environment whose program does not start.
if [ ! -e "$venv/.complete" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
    say "Making the Python environment ($version, about a minute) ..."
    rm -rf "$venv"
    mkdir -p "$cache/venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --require-hashes -r "$lock"
    : >"$venv/.complete"
fi

if [ ! -e "$collections/.complete" ]; then
    say "Fetching kubernetes.core and community.general ..."
    rm -rf "$collections"
    mkdir -p "$collections/wheel"
    "$venv/bin/pip" download --quiet --no-deps --require-hashes --only-binary=:all: --python-version 3.12 -d "$collections/wheel" -r "$bundle"
    "$venv/bin/python" - "$collections" kubernetes/core community/general <<'PY'
import pathlib, sys, zipfile
target, *wanted = sys.argv[1:]
wheel, = pathlib.Path(target, "wheel").glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if any(name.startswith(f"ansible_collections/{collection}/") for collection in wanted):
            archive.extract(name, target)
PY
    rm -rf "$collections/wheel"
    : >"$collections/.complete"
fi

# The collection under its real name, beside those that it needs.
tree="$root/.build/collections/ansible_collections"
mkdir -p "$tree/gpufleet"
ln -sfn ../../../.. "$tree/gpufleet/dra"
ln -sfn "$collections/ansible_collections/kubernetes" "$tree/kubernetes"
ln -sfn "$collections/ansible_collections/community" "$tree/community"
ln -sfn "$venv" "$root/.build/venv"
