//go:build !unix

package subprocess

import "io/fs"

// own is true: each user has an own folder for temporary files.
func own(fs.FileInfo) bool { return true }
