package quantise

// Tests run once what they compare: with the parameters of [simd.Fused], which normally only
// later runs use.
func init() { FuseFirst = true }
