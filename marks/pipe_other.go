//go:build !linux

package marks

// pipeBlock is what a pipe takes whole or not at all: POSIX promises 512 bytes.
const pipeBlock = 512
