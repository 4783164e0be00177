#!/usr/bin/env bash
# Print the JAVA_HOME of a Java 17 or later. Looks at JAVA_HOME, at `java` on the PATH and in the usual places;
# installs one where it may (root on Debian or Ubuntu), and says exactly how elsewhere.
set -euo pipefail

min=17

say() { printf '%s\n' "$@" >&2; }

# Major version of the Java in a folder; nothing when there is none. The `release` file spares starting a JVM.
version_of() {
  local home="$1" text=""
  [ -x "$home/bin/java" ] || return 0
  if [ -r "$home/release" ]; then text="$(sed -n 's/^JAVA_VERSION="\([^"]*\)".*/\1/p' "$home/release")"; fi
  if [ -z "$text" ]; then text="$("$home/bin/java" -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1)" || true; fi
  text="${text#1.}" # 1.8 is 8
  printf '%s' "${text%%[!0-9]*}"
}

use_if_fits() {
  local version
  version="$(version_of "$1")"
  if [ -n "$version" ] && [ "$version" -ge "$min" ]; then printf '%s\n' "$1"; exit 0; fi
}

# Follows links from a `java` to its home without `readlink -f`, which older macOS lacks.
home_of() {
  local path="$1" link
  while link="$(readlink "$path")"; do
    case "$link" in /*) path="$link" ;; *) path="$(dirname "$path")/$link" ;; esac
  done
  (cd "$(dirname "$path")/.." && pwd -P)
}

look_around() {
  local home
  if [ -x /usr/libexec/java_home ]; then # macOS
    home="$(/usr/libexec/java_home -v "$min+" 2>/dev/null)" && use_if_fits "$home"
  fi
  # The long-term versions that Spark is tested with come first, then whatever there is.
  for home in /usr/lib/jvm/*-{17,21}-* /usr/lib/jvm/* /usr/java/* /opt/java/* /opt/jdk* \
    /opt/homebrew/opt/openjdk* /usr/local/opt/openjdk* /Library/Java/JavaVirtualMachines/*/Contents/Home \
    "$HOME"/.sdkman/candidates/java/* "$HOME"/.jdks/*; do
    use_if_fits "$home"
  done
}

if [ -n "${JAVA_HOME:-}" ]; then
  use_if_fits "$JAVA_HOME"
  say "JAVA_HOME ($JAVA_HOME) is not a Java $min or later; looking elsewhere."
fi
if on_path="$(command -v java)"; then use_if_fits "$(home_of "$on_path")"; fi
look_around

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "Installing openjdk-$min-jre-headless ..."
  log="$(mktemp)"
  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"; }
  # Newer Debian releases have dropped 17; their default is later, which will do.
  if { apt-get update -qq && { install "openjdk-$min-jre-headless" || install default-jre-headless; }; } >"$log" 2>&1; then
    rm -f "$log"
    look_around
  else
    tail -n 5 "$log" >&2
    rm -f "$log"
  fi
fi

say "Spark needs Java $min or later, and none was found. Install one and run this again:"
say "  macOS:           brew install openjdk@$min"
say "  Debian, Ubuntu:  sudo apt-get install openjdk-$min-jre-headless   (or default-jre-headless)"
say "  Fedora:          sudo dnf install java-latest-openjdk-headless"
say "If it is installed in an unusual place, set JAVA_HOME to its folder."
exit 1
