#!/usr/bin/env bash
# Print a folder with a Kafka broker: jars/ (its published Java packages, fetched once from Maven Central, about 54 MB)
# and template/ (the empty log folder of one KRaft node). No broker is started: tests start private ones of their own.
# Maven fetches the packages; where there is none, root on Debian or Ubuntu gets it from the system's packages.
set -euo pipefail

version=4.1.0
here="${CLINKER_KAFKA_HOME:-$HOME/.cache/clinker-spark-tests/kafka-$version}"

say() { printf '%s\n' "$@" >&2; }
fail() {
  say "No Kafka broker: the tests that need one are skipped." "$@"
  exit 1
}
found() { if [ -f "$here/complete" ]; then printf '%s\n' "$here"; exit 0; fi; }

found
exec 9>/tmp/.clinker-ensure-services.lock
flock 9 # two test processes may ask at once
found

java_home="$("$(dirname "${BASH_SOURCE[0]}")/ensure_java.sh")" || fail
log="$(mktemp)"
work="$(mktemp -d)"
trap 'rm -rf "$log" "$work"' EXIT
if ! command -v mvn >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then fail "  Debian, Ubuntu:  sudo apt-get install maven"; fi
  say "Installing Maven, to fetch a Kafka broker for the tests of streams ..."
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven; } \
    >"$log" 2>&1 || fail "$(tail -n 5 "$log")"
fi

say "Fetching Kafka $version for the tests of streams ..."
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
JAVA_HOME="$java_home" timeout 600 mvn -q -B -f "$work/pom.xml" \
  org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$work/jars" >"$log" 2>&1 || fail "$(tail -n 5 "$log")"

# Formatting the log folder takes a JVM and two seconds: done once, and copied for each broker.
cat >"$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:2
log.dirs=$work/template
PROPERTIES
"$java_home/bin/java" -cp "$work/jars/*" kafka.tools.StorageTool format \
  --cluster-id Y2xpbmtlci10ZXN0cy0wMA --config "$work/server.properties" >"$log" 2>&1 || fail "$(tail -n 5 "$log")"

mkdir -p "$(dirname "$here")"
rm -rf "$here"
touch "$work/complete"
cp -r "$work" "$here.new.$$"
mv "$here.new.$$" "$here"
found
