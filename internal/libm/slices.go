package libm

// ExpTo sets dst[i] = e^src[i].
func ExpTo(dst, src []float32) { each(dst, src, Exp) }

// LogTo sets dst[i] = log(src[i]).
func LogTo(dst, src []float32) { each(dst, src, Log) }

// SigmoidTo sets dst[i] = 1/(1+e^-src[i]).
func SigmoidTo(dst, src []float32) { each(dst, src, Sigmoid) }

// TanhTo sets dst[i] = tanh(src[i]).
func TanhTo(dst, src []float32) { each(dst, src, Tanh) }

func each(dst, src []float32, f func(float32) float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = f(x)
	}
}
