//go:build unix && !freebsd

package child

import "golang.org/x/sys/unix"

// limitData bounds the data of this process: heap and private mappings.
func limitData(bytes int64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)})
}
