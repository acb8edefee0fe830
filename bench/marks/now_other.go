//go:build !linux

package main

import "time"

var start = time.Now()

// now is the time since the start in nanoseconds.
func now() int64 { return int64(time.Since(start)) }
