#!/usr/bin/env bash
# Create or update .venv. Says nothing and costs next to nothing when it is up to date.
#
#   scripts/bootstrap.sh        what is needed to use clinker
#   scripts/bootstrap.sh dev    and what is needed to work on it
#
# PYTHON=/path/to/python chooses the interpreter for a new environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra="${1:-}"
venv=.venv
python="$venv/bin/python"
min_minor=11

say() { printf '%s\n' "$@" >&2; }
fail() { say "$@"; exit 1; }
as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

fits() { "$1" -c "import sys; sys.exit(sys.version_info < (3, $min_minor))" >/dev/null 2>&1; }

find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python; do
    if fits "$candidate"; then command -v "$candidate"; return; fi
  done
  say "Python 3.$min_minor or later is needed, and none was found."
  say "  macOS:   brew install python@3.12"
  say "  Debian:  apt-get install python3 python3-venv"
  say "  Fedora:  dnf install python3"
  say "or set PYTHON=/path/to/python."
  return 1
}

create_venv() {
  local base version log
  base="$(find_python)"
  version="$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
  say "Creating $venv with Python $version ..."
  rm -rf "$venv"
  log="$(mktemp)"
  if ! "$base" -m venv "$venv" >"$log" 2>&1; then
    # Debian and Ubuntu keep venv and its pip in a package of their own.
    if as_root; then
      say "Installing python$version-venv ..."
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "python$version-venv"; } >"$log" 2>&1 || true
    fi
    rm -rf "$venv"
    if ! "$base" -m venv "$venv" >"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$log"
      fail "A virtual environment could not be created." "  Debian or Ubuntu:  sudo apt-get install python$version-venv"
    fi
  fi
  rm -f "$log"
}

# The environment is good for exactly this pyproject.toml in exactly this folder (an editable install knows its path).
fingerprint() { { pwd; cat pyproject.toml; } | cksum; }
is_current() { [ -f "$venv/.installed-$1" ] && [ "$(cat "$venv/.installed-$1")" = "$(fingerprint)" ]; }

if [ -x "$python" ]; then
  if is_current dev || { [ -z "$extra" ] && is_current run; }; then exit 0; fi
fi
fits "$python" || create_venv

target="."
[ -n "$extra" ] && target=".[$extra]"
say "Installing the dependencies into $venv (PySpark is about 450 MB the first time) ..."
"$python" -m pip install --quiet --disable-pip-version-check --editable "$target" \
  || fail "The dependencies could not be installed; see the message above."
fingerprint >"$venv/.installed-${extra:-run}"
