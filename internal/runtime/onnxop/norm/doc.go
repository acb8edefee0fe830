// Package norm implements ONNX's batch, instance, group and layer normalisations.
package norm
