package window

// Points are bilinear sampling points in planes of one size: the weights of the four pixels
// around each, or of fewer at an edge.
type Points[T ~float32 | ~float64] struct {
	pos    []int32 // of pixels in a plane, four a point
	weight []T
	n      int
	edges  []edge
}

// edge is a point with fewer than four pixels.
type edge struct{ point, pixels int }

// NewPoints allocates the given number of points.
func NewPoints[T ~float32 | ~float64](points int) *Points[T] {
	return &Points[T]{pos: make([]int32, points*4), weight: make([]T, points*4), edges: make([]edge, 0, points)}
}

// Reset removes all points.
func (p *Points[T]) Reset() { p.n, p.edges = 0, p.edges[:0] }

// Len returns the number of points.
func (p *Points[T]) Len() int { return p.n }

// Next adds a point and returns the slices for its pixels and their weights.
func (p *Points[T]) Next() (pos []int32, weight []T) {
	from := p.n * 4
	p.n++
	return p.pos[from:][:4:4], p.weight[from:][:4:4]
}

// Fewer says that the last point has only the first pixels.
func (p *Points[T]) Fewer(pixels int) {
	from := (p.n - 1) * 4
	clear(p.pos[from+pixels:][:4-pixels])
	p.edges = append(p.edges, edge{p.n - 1, pixels})
}

// Sample writes the points of a plane.
func (p *Points[T]) Sample(dst, plane []T) {
	dst = dst[:p.n]
	if len(plane) == 0 {
		clear(dst)
		return
	}
	pos, weight := p.pos[:len(dst)*4], p.weight[:len(dst)*4]
	for i := range dst {
		q, w := pos[:4:4], weight[:4:4]
		dst[i] = w[0]*plane[q[0]] + w[1]*plane[q[1]] + w[2]*plane[q[2]] + w[3]*plane[q[3]]
		pos, weight = pos[4:], weight[4:]
	}
	for _, e := range p.edges {
		from := e.point * 4
		var sum T
		for j, q := range p.pos[from:][:e.pixels] {
			sum += p.weight[from+j] * plane[q]
		}
		dst[e.point] = sum
	}
}
