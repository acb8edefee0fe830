//go:build !linux && !darwin

package main

import "time"

var begun = time.Now()

// spent is the time since the process began.
func spent() time.Duration { return time.Since(begun) }
