//go:build !unix

package subprocess

import "io/fs"

// own is true: each user has a folder of their own for temporary files.
func own(fs.FileInfo) bool { return true }
