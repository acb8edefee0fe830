package profile

import (
	"slices"
	"strconv"
)

// Ranks returns for each layer the range of places that it may have by time, 1 for the slowest. A
// layer is certainly slower than another one if their 95 % intervals do not overlap. This holds
// for any correlation of the two times: their difference varies by at most the sum of both
// spreads. The places are nil for layers without a time. They are nil for all layers unless each
// time is measured and has an interval.
func Ranks(ls []Layer) []*[2]int64 {
	out := make([]*[2]int64, len(ls))
	var lows, highs []float64
	for i := range ls {
		if !ls[i].timed() {
			continue
		}
		iv := measuredInterval(ls[i].Latency)
		if iv == nil {
			return out
		}
		lows, highs = append(lows, iv[0]), append(highs, iv[1])
	}
	slices.Sort(lows)
	slices.Sort(highs)
	for i := range ls {
		if !ls[i].timed() {
			continue
		}
		ci := ls[i].Latency.CI95
		faster, _ := slices.BinarySearch(highs, ci[0])
		notSlower, _ := slices.BinarySearchFunc(lows, ci[1], func(low, high float64) int {
			if low <= high {
				return -1
			}
			return 1
		})
		out[i] = &[2]int64{int64(len(lows)-notSlower) + 1, int64(len(highs) - faster)}
	}
	return out
}

// timed reports whether the layer ran and has a time.
func (l *Layer) timed() bool {
	_, ok := l.Latency.Best()
	return ok && l.State != NotReached
}

// measuredInterval returns the confidence interval of a measured figure, nil for others. A band is
// none: it says how coarse a figure is, such as by the digits that a board prints.
func measuredInterval(m *Metric) *[2]float64 {
	if m == nil || m.Kind != Measured || m.Band != nil {
		return nil
	}
	return m.Interval()
}

// RankText returns places as people read them: "1st", "1st or 2nd", "3rd to 5th"; "" for none.
func RankText(r *[2]int64) string {
	switch {
	case r == nil:
		return ""
	case r[0] == r[1]:
		return ordinal(r[0])
	case r[1] == r[0]+1:
		return ordinal(r[0]) + " or " + ordinal(r[1])
	}
	return ordinal(r[0]) + " to " + ordinal(r[1])
}

// ordinal formats 1 as "1st".
func ordinal(n int64) string {
	end := "th"
	if tens := n / 10 % 10; tens != 1 && n%10 >= 1 && n%10 <= 3 {
		end = [...]string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.FormatInt(n, 10) + end
}

// rank sets the intervals of the shares and the places of the layers. whole is the sum of the
// layers' times.
func (p *Profile) rank(whole float64) {
	for i, r := range Ranks(p.Layers) {
		l := &p.Layers[i]
		l.Rank, l.ShareCI95 = r, nil
		if iv := measuredInterval(l.Latency); iv != nil && l.Share != nil && l.timed() {
			l.ShareCI95 = &[2]float64{min(max(0, iv[0]/whole), 1), min(max(0, iv[1]/whole), 1)}
		}
	}
}
