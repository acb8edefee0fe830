// Package pool holds TFLite's pooling and resizing of pictures.
package pool
