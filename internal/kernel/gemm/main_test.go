package gemm

import "github.com/opmeter/opmeter/internal/kernel/quantise"

// Tests run once what they compare: with the parameters of [simd.Fused], which normally only
// later runs use.
func init() { quantise.FuseFirst = true }
