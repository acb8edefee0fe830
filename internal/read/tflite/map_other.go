//go:build !unix

package tflite

import (
	"errors"
	"os"
)

// mapFile reads a file; there is no mapping on this system.
func mapFile(name string) (data []byte, unmap func() error, err error) {
	data, err = os.ReadFile(name)
	if err == nil && len(data) == 0 {
		err = errors.New("the file is empty")
	}
	return data, func() error { return nil }, err
}
