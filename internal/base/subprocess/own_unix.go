//go:build unix

package subprocess

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether a file belongs to the user of this process.
func own(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
