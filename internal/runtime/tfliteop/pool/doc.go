// Package pool implements TFLite's pooling and image resizing.
package pool
