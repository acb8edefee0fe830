//go:build !linux

package main

import "os"

// resident is not known here.
func resident(*os.ProcessState) int64 { return 0 }
