#!/usr/bin/env bash
# Gate the models of a change, and show the result in the summary of the job.
#
#   MODELS     model files, folders or patterns, one on each line
#   FLAGS      further flags of opmeter gate, one on each line
#   UNDECIDED  "fail" or "warn": what an undecided gate does
#   RESULTS    folder for gate.md, gate.xml and gate.json
set -euo pipefail

case "$UNDECIDED" in
fail | warn) ;;
*)
	echo "gate.sh: undecided \"$UNDECIDED\": expected fail or warn" >&2
	exit 2
	;;
esac
args=()
while IFS= read -r line; do
	if [ -n "$line" ]; then args+=("$line"); fi
done <<<"$FLAGS"
while IFS= read -r line; do
	# A pattern stands for its files, and a name that matches nothing for itself.
	while IFS= read -r file; do
		if [ -n "$file" ]; then args+=("$file"); fi
	done < <(compgen -G "$line" || echo "$line")
done <<<"$MODELS"

mkdir -p "$RESULTS"
status=0
opmeter gate ${args[@]+"${args[@]}"} -o "$RESULTS/gate.md" -o "$RESULTS/gate.xml" -o "$RESULTS/gate.json" || status=$?
echo "status=$status" >>"${GITHUB_OUTPUT:-/dev/null}"
if [ -f "$RESULTS/gate.md" ]; then cat "$RESULTS/gate.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"; fi
if [ "$status" = 5 ] && [ "$UNDECIDED" = warn ]; then
	echo "::warning title=opmeter gate::undecided: the base or the measurement does not say whether the change is worse"
	exit 0
fi
exit "$status"
