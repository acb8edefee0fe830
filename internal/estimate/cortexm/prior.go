package cortexm

// Families of floating-point kernels and kernels with 16-bit activations. They accompany runtimes
// whose own family names the int8 kernels.
const (
	FloatTFLM      = "tflm-float"
	FloatXCubeAI   = "x-cube-ai-float"
	Int16CMSISNN   = "tflm-cmsis-nn-int16"
	Int16Reference = "tflm-reference-int16"
)

// Prior returns the coefficients of a family on a tier of cores before fitting. Only ratios
// matter: fits start from them, and the mix of a network is computed with them. They come from
// measured layers and from the structure of the kernels.
func Prior(family, tier string) Vector {
	var v Vector
	set := func(call, op, mac, gather, window, out, point, pgather, pout, dw, dwout, dense, dout, pool, el, tab, move float64) {
		v = Vector{call, op, mac, gather, window, out, point, pgather, pout, dw, dwout, dense, dout, pool, el, tab, move, 20, 80, 600, 140, 30}
	}
	switch {
	case family == FloatTFLM:
		// The loops of the reference kernels without requantisation.
		set(2000, 1000, 15, 0, 60, 60, 19, 0, 30, 40, 40, 14, 20, 20, 80, 400, 5)
	case family == FloatXCubeAI:
		set(5000, 1500, 5, 0, 0, 300, 5, 0, 100, 8, 50, 3, 30, 8, 20, 400, 4)
	case family == "tflm-reference", family == Int16Reference:
		// VexRiscv: 19 per MAC and 160 per output, depthwise 46-50 per MAC.
		set(4000, 1500, 18, 0, 40, 160, 19, 1, 160, 46, 60, 14, 80, 20, 100, 600, 8)
	case family == "x-cube-ai":
		set(5000, 1500, 0.95, 1.5, 0, 8, 0.95, 1.5, 12, 2.0, 12, 1.4, 12, 3, 12, 400, 2)
	case family == "tflm-esp-nn":
		set(4000, 2000, 0.7, 2, 0, 25, 0.6, 1, 12, 4.5, 12, 1.0, 30, 4, 6, 400, 2)
	case family == "tflm-andes-nn":
		set(4000, 2000, 0.9, 2, 0, 12, 0.9, 1.5, 15, 3, 20, 3.0, 20, 4, 12, 500, 2)
	case tier == "mve":
		// Apollo510 counters: pointwise 0.47, depthwise 3.2, dense 1.7 per MAC.
		set(3000, 6000, 0.22, 0.5, 5, 12, 0.3, 0.5, 12, 2.2, 8, 0.8, 12, 1.85, 6, 300, 1)
	default:
		// MLTK device report on an M33: 2.95 per MAC and 87 per output.
		set(2000, 1500, 2.4, 2, 120, 45, 2.4, 4, 45, 5, 50, 3.3, 60, 13.7, 40, 600, 4)
	}
	return v
}
