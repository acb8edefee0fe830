package firmware

import "embed"

// Kernels has the portable integer kernels of generated programs, below kernels/.
//
//go:embed kernels/*.c kernels/*.h
var Kernels embed.FS
