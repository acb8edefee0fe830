package cortexm

// FarAway is the distance of two mixes beyond which one predicts little about the other.
const FarAway = 0.4

// Mix returns the share of each term in the cycles of a network, without call and operator
// overhead.
func Mix(coef, work Vector) Vector {
	coef[Call], coef[Op] = 0, 0
	sum := coef.Dot(work)
	var m Vector
	if sum <= 0 {
		return m
	}
	for i := range m {
		m[i] = coef[i] * work[i] / sum
	}
	return m
}

// Distance returns the distance of two mixes: the share that differs, from 0 to 1.
func Distance(a, b Vector) float64 {
	d := 0.0
	for i := range a {
		if a[i] > b[i] {
			d += a[i] - b[i]
		}
	}
	return d
}

// Nearest returns the distance to the nearest of the mixes, 1 without mixes.
func Nearest(m Vector, seen []Vector) float64 {
	best := 1.0
	for _, s := range seen {
		best = min(best, Distance(m, s))
	}
	return best
}

// OverheadHalf is the half-width, in logarithms, of the band of a network that consists of call
// overhead only: ports of one runtime differ by a factor of three.
const OverheadHalf = 1.1

// Overhead returns the share of cycles spent on call and operator overhead.
func Overhead(coef, work Vector) float64 {
	sum := coef.Dot(work)
	if sum <= 0 {
		return 0
	}
	return (coef[Call]*work[Call] + coef[Op]*work[Op]) / sum
}

// Half returns the half-width of the band of an estimate, in logarithms. It combines the
// half-widths for networks like the calibrated ones and for others, and the uncertainty of call
// overhead.
func Half(near, far, ports, distance, overhead float64) float64 {
	return near + (far-near)*min(1, distance/FarAway)*(1-overhead) + ports*overhead
}
