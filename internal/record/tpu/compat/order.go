package compat

// sortDescending is the order of texts from the last to the first as the converter's
// library makes it: a quicksort that is not stable, over the reversed list.
func sortDescending(keys []string) []int {
	n := len(keys)
	q := quicksort{v: make([]string, n), at: make([]int, n)}
	for i := range keys {
		q.v[i] = keys[n-1-i]
		q.at[i] = i
	}
	q.sort()
	out := make([]int, n)
	for i := range out {
		out[i] = n - 1 - q.at[n-1-i]
	}
	return out
}

// quicksort orders positions by their texts: median of three, the larger part later,
// short parts by insertion, parts that lie too deep by a heap.
type quicksort struct {
	v  []string
	at []int
}

const smallPart = 15

func (q *quicksort) less(i, j int) bool { return q.v[i] < q.v[j] }

func (q *quicksort) sort() {
	type part struct{ lo, hi, depth int }
	now := part{0, len(q.at) - 1, 2 * log2(len(q.at))}
	var later []part
	for {
		if now.depth < 0 {
			q.heap(now.lo, now.hi)
		} else {
			for now.hi-now.lo > smallPart {
				i := q.partition(now.lo, now.hi)
				next := part{now.lo, i - 1, 0}
				other := part{i + 1, now.hi, 0}
				if i-now.lo >= now.hi-i {
					next, other = other, next
				}
				now.depth--
				next.depth, other.depth = now.depth, now.depth
				later = append(later, other)
				now = next
			}
			q.insertion(now.lo, now.hi)
		}
		if len(later) == 0 {
			return
		}
		now = later[len(later)-1]
		later = later[:len(later)-1]
	}
}

// partition splits a part at its middle one of three and returns where that lies.
func (q *quicksort) partition(lo, hi int) int {
	at := q.at
	mid := lo + (hi-lo)>>1
	if q.less(at[mid], at[lo]) {
		at[mid], at[lo] = at[lo], at[mid]
	}
	if q.less(at[hi], at[mid]) {
		at[hi], at[mid] = at[mid], at[hi]
	}
	if q.less(at[mid], at[lo]) {
		at[mid], at[lo] = at[lo], at[mid]
	}
	pivot := at[mid]
	i, j := lo, hi-1
	at[mid], at[j] = at[j], at[mid]
	for {
		i++
		for q.less(at[i], pivot) {
			i++
		}
		j--
		for q.less(pivot, at[j]) {
			j--
		}
		if i >= j {
			break
		}
		at[i], at[j] = at[j], at[i]
	}
	at[i], at[hi-1] = at[hi-1], at[i]
	return i
}

func (q *quicksort) insertion(lo, hi int) {
	for i := lo + 1; i <= hi; i++ {
		k, j := q.at[i], i
		for ; j > lo && q.less(k, q.at[j-1]); j-- {
			q.at[j] = q.at[j-1]
		}
		q.at[j] = k
	}
}

func (q *quicksort) heap(lo, hi int) {
	n := hi - lo + 1
	a := func(i int) *int { return &q.at[lo+i-1] }
	sift := func(i, x int) {
		for j := 2 * i; j <= n; j = 2 * i {
			if j < n && q.less(*a(j), *a(j + 1)) {
				j++
			}
			if !q.less(x, *a(j)) {
				break
			}
			*a(i) = *a(j)
			i = j
		}
		*a(i) = x
	}
	for l := n / 2; l > 0; l-- {
		sift(l, *a(l))
	}
	for n > 1 {
		x := *a(n)
		*a(n) = *a(1)
		n--
		sift(1, x)
	}
}
