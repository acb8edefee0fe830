// Package norm holds ONNX's normalisations of batches, instances, groups and rows.
package norm
