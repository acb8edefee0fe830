// Package firmware has what goes onto devices: the opmeter agent, a C header that any
// firmware can include (docs/reference/agent.md).
package firmware

import "embed"

// Files are the sources, by their paths below this package.
//
//go:embed opmeter.h opmeter_tflm.h boards
var Files embed.FS
