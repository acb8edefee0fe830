// Package nn holds ONNX's layers: convolution, pooling, normalisation,
// matrix products, recurrent networks, attention, resizing, detection, the
// com.microsoft layers and the classical models of ai.onnx.ml.
package nn
