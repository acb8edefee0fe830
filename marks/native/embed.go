// Package native has the C functions with which an application tells of its stages
// (docs/reference/marks.md). Programs that mark in Go need [github.com/opmeter/opmeter/marks]
// alone.
package native

import "embed"

// Files are the header and what is compiled with it, in the folder c.
//
//go:embed c/opmeter_marks.h c/opmeter_marks.c
var Files embed.FS
