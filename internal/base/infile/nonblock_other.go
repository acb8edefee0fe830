//go:build !unix

package infile

// nonblock is nothing where pipes are no files.
const nonblock = 0
