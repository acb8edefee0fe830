// Package matmul implements TFLite's fully connected layers and batched matrix multiplications.
package matmul
