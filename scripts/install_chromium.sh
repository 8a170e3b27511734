#!/bin/sh
# Installs what the tests of the report page drive: chromium, and a font.
# Does nothing where it is there. Source: Debian's packages `chromium` and `fonts-dejavu-core`.
set -eu

for program in chromium chromium-browser google-chrome; do
    if command -v "$program" >/dev/null; then exit 0; fi
done

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if command -v apt-get >/dev/null; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends \
        chromium fonts-dejavu-core
elif command -v brew >/dev/null; then
    brew install --quiet --cask chromium
else
    echo "error: the tests need chromium" >&2
    echo "hint: install Chromium 120 or later with your system's packages" >&2
    exit 1
fi
