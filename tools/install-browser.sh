#!/bin/sh
# Installs a browser for the tests of the customer's page: Debian's chromium if allowed, else prints how to get one.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
else
    echo 'The tests of the customer page need a browser: install chromium (or google-chrome) with your package manager.' >&2
    exit 1
fi
