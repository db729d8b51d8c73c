#!/bin/sh
# Builds the image and runs it once: tools/image.sh [NAME:TAG] (default: fiatgate and the version of pyproject.toml).
# With buildah or podman it needs neither root nor a daemon; otherwise docker. Pulling the base needs a registry.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
image=${1:-fiatgate:$version}

for builder in buildah podman docker; do
    command -v "$builder" >/dev/null && break
    builder=
done
[ -n "$builder" ] || {
    echo "No builder here: install buildah (apt-get install buildah), podman or docker" >&2
    exit 1
}

echo "Building $image with $builder ..."
"$builder" build --tag "$image" . || {
    echo "$builder could not build $image; is the base in the Dockerfile's first FROM reachable from here?" >&2
    exit 1
}

# As pods run it: an unprivileged account, and no file of the image is writable.
started() {
    if [ "$builder" = buildah ]; then
        container=$(buildah from "$image")
        buildah run --user 10001:10001 "$container" -- "$@" || {
            buildah rm "$container" >/dev/null
            return 1
        }
        buildah rm "$container" >/dev/null
    else
        "$builder" run --rm --read-only --user 10001:10001 --cap-drop ALL "$image" "$@"
    fi
}

started fiatgate --help >/dev/null
for process in services.identity services.catalog services.invoices services.withdrawals services.webhooks \
    gateway "console desk" "console dashboard"; do
    started python -m $process settings >/dev/null
done
echo "Built $image; every command in it starts."
