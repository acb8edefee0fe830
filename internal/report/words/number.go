package words

import (
	"math"
	"strconv"
)

// mostFixed is the size from which a number is written with an exponent: its digits would be
// those of the conversion, not of the figure.
const mostFixed = 1e15

// Fixed writes a number with so many decimals, and with an exponent if it is too large for that.
func Fixed(v float64, decimals int) string {
	if math.Abs(v) >= mostFixed {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
