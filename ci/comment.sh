#!/usr/bin/env bash
# Write the result of the gate as a comment of the pull request. A later run replaces it.
#
#   NUMBER   number of the pull request
#   RESULTS  folder with gate.md
set -euo pipefail

marker='<!-- opmeter gate -->'
longest=60000 # bytes; the service takes 65536 characters

if [ ! -f "$RESULTS/gate.md" ]; then
	echo "comment.sh: $RESULTS/gate.md is absent: the gate did not run" >&2
	exit 0
fi
body="$(mktemp)"
{
	echo "$marker"
	head -c "$longest" "$RESULTS/gate.md"
	if [ "$(wc -c <"$RESULTS/gate.md")" -gt "$longest" ]; then printf '\n\n… the rest is in the results of the job\n'; fi
} >"$body"
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
id="$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$marker\")) | .id" | tail -n 1)"
if [ -n "$id" ]; then
	gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$body"
else
	gh api --silent --method POST "$comments" --field "body=@$body"
fi
