.PHONY: fast check full conformance

# Format, vet, lint and unit tests of the packages that differ from main.
fast:
	.ci/run fast

# What a change must pass.
check:
	.ci/run

# Adds fuzzing, emulated arm64, hostile models.
full:
	.ci/run full

# ONNX backend tests on the engine: table by operator, totals, comparison.
conformance:
	go run ./internal/testing/conformance/run
