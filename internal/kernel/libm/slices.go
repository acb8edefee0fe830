package libm

import "github.com/opmeter/opmeter/internal/kernel/simd"

// vectors holds the constants of the SIMD kernels.
var vectors = simd.NewLibmTable(expScale, expShift, [3]float64{expC0, expC1, expC2}, expAbove, expBelow, sigmoidTop, sigmoidBottom, exp2Table)

// ExpTo sets dst[i] = e^src[i].
func ExpTo(dst, src []float32) { ExpOf(dst, src, 0, 1) }

// ExpOf sets dst[i] = e^((src[i]-top)·scale), in float32 before the exponential.
func ExpOf(dst, src []float32, top, scale float32) {
	dst = dst[:len(src)]
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.LibmExp(dst, src, top, scale, vectors)
	}
	for i := n; i < len(src); i++ {
		dst[i] = Exp(float32(src[i]-top) * scale)
	}
}

// HasExpDivide reports whether ExpDivide is available.
func HasExpDivide() bool { return simd.CurveKernels().HasLibmExpDivide() }

// ExpDivide is [ExpOf], and divides as many others in place by a number at the
// same time. It requires [HasExpDivide].
func ExpDivide(dst, src []float32, top, scale float32, others []float32, by float32) {
	simd.CurveKernels().LibmExpDivide(dst, src, top, scale, vectors, others, by)
}

// HasSoftmaxColumns reports whether SoftmaxColumns takes lines of inner values.
func HasSoftmaxColumns(inner int) bool {
	return inner%simd.SoftmaxColumns == 0 && simd.CurveKernels().HasLibmSoftmaxColumns()
}

// SoftmaxColumns writes the softmax of columns, see [simd.Curves.LibmSoftmaxColumns]. It requires
// [HasSoftmaxColumns].
func SoftmaxColumns(dst, src []float32, lines, inner, lo, hi int, beta float32) {
	simd.CurveKernels().LibmSoftmaxColumns(dst, src, lines, inner, lo, hi, beta, vectors)
}

// logs holds the constants of the SIMD logarithm.
var logs = func() (t simd.LogTable) {
	for i, e := range logTable {
		t[i], t[16+i] = e[0], e[1]
	}
	copy(t[32:], []float64{logLn2, logA0, logA1, logA2, 1})
	return t
}()

// LogTo sets dst[i] = log(src[i]).
func LogTo(dst, src []float32) {
	dst = dst[:len(src)]
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.LibmLog(dst, src, &logs)
	}
	each(dst[n:], src[n:], Log)
}

// SigmoidTo sets dst[i] = 1/(1+e^-src[i]).
func SigmoidTo(dst, src []float32) {
	dst = dst[:len(src)]
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.LibmSigmoid(dst, src, vectors)
	}
	each(dst[n:], src[n:], Sigmoid)
}

// TanhTo sets dst[i] = tanh(src[i]).
func TanhTo(dst, src []float32) {
	dst = dst[:len(src)]
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.LibmTanh(dst, src)
	}
	each(dst[n:], src[n:], Tanh)
}

// EluTo sets dst[i] = e^src[i] - 1 if src[i] is negative, else src[i].
func EluTo(dst, src []float32) {
	dst = dst[:len(src)]
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.LibmElu(dst, src)
	}
	each(dst[n:], src[n:], elu)
}

// waves holds the constants of the SIMD sine and cosine.
var waves = func() (t simd.WaveTable) {
	t[0], t[1] = quadrants, quarter
	copy(t[2:], sinTerms[:])
	copy(t[5:], cosTerms[:])
	return t
}()

// SinTo sets dst[i] = sin(src[i]).
func SinTo(dst, src []float32) { waveTo(dst, src, 0, Sin) }

// CosTo sets dst[i] = cos(src[i]).
func CosTo(dst, src []float32) { waveTo(dst, src, 1, Cos) }

func waveTo(dst, src []float32, turn int32, one func(float32) float32) {
	c := simd.CurveKernels()
	if c == nil {
		each(dst, src, one)
		return
	}
	for dst = dst[:len(src)]; len(src) > 0; {
		n := c.LibmWave(dst, src, turn, &waves)
		few := min(16, len(src)-n) // the values at which the SIMD kernel stopped
		each(dst[n:n+few], src[n:n+few], one)
		dst, src = dst[n+few:], src[n+few:]
	}
}

func elu(x float32) float32 {
	if x < 0 {
		return Expm1(x)
	}
	return x
}

func each(dst, src []float32, f func(float32) float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = f(x)
	}
}
