//go:build !unix

package external

import "os"

func signalled(*os.ProcessState) (string, bool) { return "", false }
