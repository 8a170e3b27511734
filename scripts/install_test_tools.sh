#!/bin/sh
# Installs what the tests start: redis-server and redis-cli, openssl for the server's certificate, and tmux, in which the
# command line is used as a person does. Does nothing where they are there. Source: Debian's packages `redis-server` (7.0 or
# later), `openssl` and `tmux`.
set -eu

missing=""
for program in redis-server redis-cli openssl tmux; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if command -v apt-get >/dev/null; then
    as_root apt-get update -qq
    # The tests start servers of their own, on free ports: the system's is not to be started.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qq --yes redis-server openssl tmux
elif command -v brew >/dev/null; then
    brew install --quiet redis openssl tmux
else
    echo "error: the tests need$missing" >&2
    echo "hint: install Redis 7.0 or later, OpenSSL and tmux with your system's packages" >&2
    exit 1
fi
