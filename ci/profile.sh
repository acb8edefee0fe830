#!/usr/bin/env bash
# Measure models, each into a page and a profile.
#
#   MODELS   model files, one on each line
#   RESULTS  folder for the pages
set -euo pipefail

mkdir -p "$RESULTS"
while IFS= read -r model; do
	[ -n "$model" ] || continue
	name="$RESULTS/${model//[^0-9A-Za-z._-]/_}"
	opmeter profile "$model" --open=false -o "$name.html" -o "$name.opmeter"
done <<<"$MODELS"
