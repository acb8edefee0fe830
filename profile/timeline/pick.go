package timeline

// Keep returns the timeline with some of its bars, and the links between these. Counters and
// memories stay whole.
func (t *Timeline) Keep(bar func(l *Lane, bar int) bool) *Timeline {
	out := *t
	out.Lanes = make([]Lane, len(t.Lanes))
	moved := make([][]int32, len(t.Lanes))
	for i := range t.Lanes {
		l := &t.Lanes[i]
		out.Lanes[i], moved[i] = l.Pick(func(n int) bool { return bar(l, n) })
	}
	out.Links = nil
	for _, k := range t.Links {
		k.FromBar, k.ToBar = moved[k.FromLane][k.FromBar], moved[k.ToLane][k.ToBar]
		if k.FromBar >= 0 && k.ToBar >= 0 {
			out.Links = append(out.Links, k)
		}
	}
	return &out
}

// NamesInUse removes the names that no bar has.
func (t *Timeline) NamesInUse() {
	at := make([]int32, len(t.Names))
	var names []string
	for i := range t.Lanes {
		for c := range t.Lanes[i].Columns() {
			if c.Holds != OfName || c.Absent() {
				continue
			}
			for k, n := range *c.Int32 {
				if n < 0 {
					continue
				}
				if at[n] == 0 {
					names = append(names, t.Names[n])
					at[n] = int32(len(names))
				}
				(*c.Int32)[k] = at[n] - 1
			}
		}
	}
	t.Names = names
}
