// Package agent implements the host side of the opmeter agent (firmware/opmeter.h): it decodes
// frames from a stream mixed with other output, and computes inferences and figures. The format
// is described in docs/reference/agent.md.
//
// Damaged data is never used: a frame with a wrong checksum is dropped, sequence numbers show
// which inference lost a frame, and that inference is marked.
package agent
