#!/usr/bin/env bash
# The page of `durum explore` in a real browser, by keyboard. SCREENSHOTS=DIR keeps what it looks like.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build browser
need_cargo
if [ -n "${SCREENSHOTS:-}" ]; then
    mkdir -p "$SCREENSHOTS"
    DURUM_SCREENSHOTS=$(realpath "$SCREENSHOTS")
    export DURUM_SCREENSHOTS
fi
cargo test --quiet --profile test -p durum-cli --test browser -- --ignored
for picture in "${DURUM_SCREENSHOTS:-/nonexistent}"/*.base64; do
    [ -e "$picture" ] || continue
    base64 -d "$picture" >"${picture%.base64}.png"
    rm "$picture"
done
