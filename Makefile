.PHONY: conformance

# ONNX backend tests on the engine: table by operator, totals, comparison.
conformance:
	go run ./internal/testing/conformance/run
