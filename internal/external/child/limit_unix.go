//go:build unix && !freebsd

package child

import "golang.org/x/sys/unix"

// limitData limits the data segment of this process: heap and private mappings.
func limitData(bytes int64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)})
}
