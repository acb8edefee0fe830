package cortexm

// FarAway is the distance of two mixes beyond which one says little of the other.
const FarAway = 0.4

// Mix is the share of each term in the cycles of a network, without the overhead
// of calls and operators.
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

// Distance of two mixes: the share that would have to move, from 0 to 1.
func Distance(a, b Vector) float64 {
	d := 0.0
	for i := range a {
		if a[i] > b[i] {
			d += a[i] - b[i]
		}
	}
	return d
}

// Nearest is the distance to the nearest of the mixes, 1 when there are none.
func Nearest(m Vector, seen []Vector) float64 {
	best := 1.0
	for _, s := range seen {
		best = min(best, Distance(m, s))
	}
	return best
}

// OverheadHalf is the half-width, in logarithms, of the band of a network that is
// nothing but overhead of calls: ports of one runtime differ by a factor of three.
const OverheadHalf = 1.1

// Overhead is the share of cycles that goes into calls and operators as such.
func Overhead(coef, work Vector) float64 {
	sum := coef.Dot(work)
	if sum <= 0 {
		return 0
	}
	return (coef[Call]*work[Call] + coef[Op]*work[Op]) / sum
}

// Half is the half-width of the band of an estimate, in logarithms, from that of
// networks like those calibrated on and of others, and that of the overhead of calls.
func Half(near, far, ports, distance, overhead float64) float64 {
	return near + (far-near)*min(1, distance/FarAway)*(1-overhead) + ports*overhead
}
