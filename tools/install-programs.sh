#!/bin/sh
# Installs programs that tests need as Debian's packages if allowed, else names those. Arguments: PROGRAM:PACKAGE ...
missing=
for each; do command -v "${each%%:*}" >/dev/null || missing="$missing ${each##*:}"; done
[ -z "$missing" ] && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "These tests need programs that your package manager has. Debian's packages:$missing" >&2
    exit 1
fi
