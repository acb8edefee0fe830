//go:build !windows

package cli

import "syscall"

// diskErrors are the errors of a system about a disk that takes no more: it is full, the user's
// part of it is, the file may not grow, or the device fails.
var diskErrors = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO}
