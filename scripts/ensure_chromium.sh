#!/usr/bin/env bash
# A browser for the tests of pages. Where none can be had, these tests are skipped and say so.
set -uo pipefail
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Installing Chromium for the tests of pages ..." >&2
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 && exit 0
fi
echo "No Chromium: the tests that look at pages are skipped (install the package 'chromium' to run them)" >&2
exit 0
