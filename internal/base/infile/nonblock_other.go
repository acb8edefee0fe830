//go:build !unix

package infile

// nonblock is 0 on systems whose pipes are not files.
const nonblock = 0
