#!/usr/bin/env bash
# Print the folder with the programs of a PostgreSQL server (initdb, postgres). Installs the system's package where it
# may (root on Debian or Ubuntu) and says how elsewhere. No server is started: tests start private ones of their own.
set -euo pipefail

say() { printf '%s\n' "$@" >&2; }

look_around() {
  local folder found=""
  # The newest of several versions; by number, so that 9 does not come after 15.
  for folder in $(printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin \
    /usr/local/opt/postgresql*/bin | sort -V); do
    if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then found="$folder"; fi
  done
  if [ -z "$found" ] && folder="$(command -v initdb)"; then found="$(dirname "$(readlink -f "$folder")")"; fi
  if [ -n "$found" ] && [ -x "$found/postgres" ]; then printf '%s\n' "$found"; exit 0; fi
}

look_around
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  exec 9>/tmp/.clinker-ensure-services.lock
  flock 9 # two test processes may ask at once
  look_around
  say "Installing PostgreSQL for the tests of streams ..."
  log="$(mktemp)"
  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; }
  # The package would create and start a server on the usual port. Nobody asked for one.
  no_server() {
    mkdir -p /etc/postgresql-common
    if ! grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf; then
      echo 'create_main_cluster = false' >>/etc/postgresql-common/createcluster.conf
    fi
  }
  if { apt-get update -qq && install postgresql-common && no_server && install postgresql; } >"$log" 2>&1; then
    rm -f "$log"
    look_around
  else
    tail -n 5 "$log" >&2
    rm -f "$log"
  fi
fi
say "No PostgreSQL server: the tests that write to one are skipped."
say "  Debian, Ubuntu:  sudo apt-get install postgresql"
say "  macOS:           brew install postgresql@15"
exit 1
