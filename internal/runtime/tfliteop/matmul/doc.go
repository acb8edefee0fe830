// Package matmul holds TFLite's fully connected layers and products of matrices.
package matmul
