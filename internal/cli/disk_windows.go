package cli

import "golang.org/x/sys/windows"

// diskErrors are the errors of a system about a disk that takes no more.
var diskErrors = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED, windows.ERROR_FILE_TOO_LARGE}
