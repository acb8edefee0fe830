package mvp

import (
	"strings"
	"testing"
)

// Two walks joined to one: at its end the inner walk goes on to where the next step of
// the outer one is.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outer, inner, want walk
		gap                int
		ok                 bool
	}{
		// 12 steps of 2 lead 24 on, of which 4 are taken
		{walk{3, 24}, walk{4, 2}, walk{36, 2}, 8, true},
		{walk{3, 8}, walk{4, 2}, walk{12, 2}, 0, true},
		{walk{1, 10}, walk{4, 2}, walk{5, 2}, 1, true},
		{walk{3, 6}, walk{4, 2}, walk{9, 2}, -1, false}, // the next step lies behind
		{walk{3, 25}, walk{4, 2}, walk{4, 2}, 0, false}, // not an integer of steps
		{walk{3, 25}, walk{4, 0}, walk{4, 0}, 0, false},
	} {
		w, gap, ok := joined(c.outer, c.inner)
		if w != c.want || gap != c.gap || ok != c.ok {
			t.Errorf("%+v: %+v, gap %d, %v", c, w, gap, ok)
		}
	}
	for _, c := range []struct {
		w     walk
		moves bool
	}{{walk{2, 1}, true}, {walk{1, 5}, false}, {walk{5, 0}, false}, {walk{0, 1}, false}} {
		if c.w.moves() != c.moves {
			t.Errorf("%+v moves: %v", c.w, !c.moves)
		}
	}
	three := walks{{2, 1}, {1, 7}, {3, 4}, {9, 0}, {2, 8}}
	if three.crowded() {
		t.Error("three walks do not fit three dimensions")
	}
	if !append(three, &walk{2, 2}).crowded() {
		t.Error("four walks fit three dimensions")
	}
	for _, c := range []struct {
		w  walk
		ok bool
	}{{walk{1024, 2047}, true}, {walk{1025, 1}, false}, {walk{2, 2048}, false}, {walk{1, 9999}, true}, {walk{9999, 0}, true}} {
		err := walks{{2, 1}, &c.w}.fit("input")
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "steps through the input") {
			t.Errorf("%+v: %v", c.w, err)
		}
	}
}

// What the programs of a plan execute, by hand: of 3 channels in 2 groups of 4 rows and
// 5 columns 120 results of 6 products each.
func TestAddRun(t *testing.T) {
	t.Parallel()
	base := run{programs: 2, channels: 3, groups: 2, rows: 4, columns: 5, taps: 6}
	want := Counts{Programs: 2, segments: 1, Stores: 120, pixels: 40, Instructions: 3 + 120*(2*6+2), Stalls: 120 * 7}
	for _, c := range []struct {
		name   string
		change func(*run, *Counts)
	}{
		{"no gaps", func(*run, *Counts) {}},
		{"gaps of one are free", func(r *run, _ *Counts) { r.rowGap, r.filterGap, r.storeGap, r.storeSteps = 1, 1, 1, 1 }},
		{"between rows", func(r *run, c *Counts) { r.rowGap, c.NoOps, c.Instructions = 3, 12*2, c.Instructions+12*2 }},
		{"between stores", func(r *run, c *Counts) { r.storeGap, c.NoOps, c.Instructions = 3, 12*2, c.Instructions+12*2 }},
		// An instruction stands between the last product and its use.
		{"between filter rows", func(r *run, c *Counts) {
			r.filterGap, c.NoOps, c.Instructions, c.Stalls = 2, 120, c.Instructions+120, c.Stalls-120
		}},
		{"steps of a store", func(r *run, c *Counts) { r.storeSteps, c.NoOps, c.Instructions = 3, 120*2, c.Instructions+120*2 }},
	} {
		r, want := base, want
		c.change(&r, &want)
		want.idle = want.NoOps > 0
		var got Counts
		got.addRun(&r)
		if got != want {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, want)
		}
		got.addRun(&r)
		if got.Programs != 4 || got.segments != 2 || got.Instructions != 2*want.Instructions || got.Stalls != 2*want.Stalls || got.NoOps != 2*want.NoOps || got.pixels != 80 {
			t.Errorf("%s: two parts %+v", c.name, got)
		}
	}
}

// Steps between stores that are too long are made of one for each row of a group, and
// then of halves.
func TestShortenStores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		out   walk
		rows  int
		want  walk
		extra int
		ok    bool
	}{
		{"short", walk{5, 2047}, 2, walk{5, 2047}, 0, true},
		{"of one", walk{1, 9999}, 2, walk{1, 9999}, 0, true},
		{"by rows", walk{5, 3000}, 2, walk{10, 1500}, 1, true},
		{"by halves", walk{5, 12000}, 2, walk{40, 1500}, 7, true}, // 6000, 3000, 1500
		{"odd", walk{5, 6002}, 2, walk{}, 0, false},               // 3001
	} {
		p := &runPlanner{run: run{rows: c.rows}, outGroup: c.out}
		err := p.shortenStores()
		if (err == nil) != c.ok || c.ok && (p.outGroup != c.want || p.storeSteps != c.extra) {
			t.Errorf("%s: %+v with %d steps more, %v", c.name, p.outGroup, p.storeSteps, err)
		}
	}
}

// Rows and columns of stores share a dimension where there are too many, or where rows
// are too far apart.
func TestJoinStores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                       string
		channel, row, column, rest walk
		want                       walk // columns
		gap                        int
		ok                         bool
	}{
		{"three", walk{4, 1}, walk{5, 40}, walk{6, 4}, walk{1, 0}, walk{6, 4}, 0, true},
		{"four", walk{4, 1}, walk{5, 40}, walk{6, 4}, walk{2, 200}, walk{50, 4}, 4, true},
		{"far", walk{4, 1}, walk{5, 4000}, walk{6, 4}, walk{1, 0}, walk{5000, 4}, 994, true},
		{"far, one row", walk{4, 1}, walk{1, 4000}, walk{6, 4}, walk{1, 0}, walk{6, 4}, 0, true},
		{"four that do not join", walk{4, 1}, walk{5, 41}, walk{6, 4}, walk{2, 200}, walk{}, 0, false},
	} {
		p := &runPlanner{outChannel: c.channel, outRow: c.row, outColumn: c.column, outGroup: c.rest}
		err := p.joinStores()
		if (err == nil) != c.ok || c.ok && (p.outColumn != c.want || p.storeGap != c.gap) {
			t.Errorf("%s: %+v, gap %d, %v", c.name, p.outColumn, p.storeGap, err)
		}
		if c.gap > 0 && p.outRow.steps != 1 {
			t.Errorf("%s: rows still walk %+v", c.name, p.outRow)
		}
	}
}

// A program for each channel where the input takes too many dimensions, unless a column
// is too little for it.
func TestSplitChannels(t *testing.T) {
	t.Parallel()
	four := func(p *runPlanner) {
		p.channel, p.row, p.column, p.filterRow = walk{4, 1}, walk{5, 40}, walk{6, 4}, walk{3, 20}
	}
	for _, c := range []struct {
		name     string
		change   func(p *runPlanner)
		programs int
		ok       bool
	}{
		{"three", func(p *runPlanner) { p.row = walk{1, 40} }, 1, true},
		{"four", func(*runPlanner) {}, 4, true},
		{"five", func(p *runPlanner) { p.filterColumn = walk{2, 3} }, 1, false},
		{"one channel", func(p *runPlanner) { p.channel, p.filterColumn = walk{1, 1}, walk{2, 3} }, 1, false},
		{"a column", func(p *runPlanner) { p.x.n = 1 }, 4, true},
		{"a column of one row", func(p *runPlanner) { p.x.n, p.rows, p.groups = 1, 1, 1 }, 1, false},
		{"a column of one filter row", func(p *runPlanner) { p.x.n, p.y.t = 1, 1 }, 1, false},
		{"a column of one filter column", func(p *runPlanner) { p.x.n, p.x.t = 1, 1 }, 1, false},
	} {
		p := &runPlanner{run: run{programs: 1, rows: 5, groups: 1}, x: segment{n: 6, t: 3}, y: segment{n: 5, t: 3}}
		four(p)
		c.change(p)
		err := p.splitChannels()
		if (err == nil) != c.ok || c.ok && p.programs != c.programs {
			t.Errorf("%s: %d programs, %v", c.name, p.programs, err)
		}
	}
}

// Rows join columns where the input is crowded or rows are far apart; in groups of as
// many rows as the filter covers where one dimension has too few steps for all.
func TestJoinRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		row, column  walk
		other        walk
		n, t, stride int
		want         walk // columns
		gap          int
		rows, groups int
		ok           bool
	}{
		{"not crowded", walk{5, 40}, walk{6, 4}, walk{1, 0}, 5, 3, 1, walk{6, 4}, 0, 5, 1, true},
		{"crowded", walk{5, 40}, walk{6, 4}, walk{3, 20}, 5, 3, 1, walk{50, 4}, 4, 5, 1, true},
		{"far", walk{5, 2048}, walk{6, 16}, walk{1, 0}, 5, 3, 1, walk{640, 16}, 122, 5, 1, true},
		{"at the limit", walk{5, 2047}, walk{6, 16}, walk{1, 0}, 5, 3, 1, walk{6, 16}, 0, 5, 1, true},
		{"one row", walk{1, 4000}, walk{6, 4}, walk{3, 20}, 1, 3, 1, walk{6, 4}, 0, 1, 1, true},
		{"no integer", walk{5, 41}, walk{6, 4}, walk{3, 20}, 5, 3, 1, walk{}, 0, 0, 0, false},
		// 20 rows of 100 steps are 2000, more than 1024: groups of the 3 rows of the filter,
		// 300 steps.
		{"groups", walk{20, 400}, walk{50, 4}, walk{3, 20}, 20, 3, 1, walk{300, 4}, 50, 3, 6, true},
		{"groups with steps", walk{20, 400}, walk{50, 4}, walk{3, 20}, 20, 3, 2, walk{200, 4}, 50, 2, 10, true},
		{"fewer rows than a group", walk{12, 400}, walk{50, 4}, walk{3, 20}, 12, 13, 1, walk{}, 0, 0, 0, false},
		{"too long a group", walk{20, 400}, walk{50, 4}, walk{3, 20}, 20, 11, 1, walk{}, 0, 0, 0, false},
	} {
		p := &runPlanner{run: run{rows: c.n, groups: 1}, x: segment{n: c.column.steps, t: 3}, y: segment{n: c.n, t: c.t}, channel: walk{4, 1}, row: c.row, column: c.column, filterRow: c.other, outRow: walk{c.n, 7}}
		err := p.joinRows(c.stride)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !c.ok {
			continue
		}
		if p.column != c.want || p.rowGap != c.gap || p.rows != c.rows || p.groups != c.groups {
			t.Errorf("%s: columns %+v, gap %d, %d rows in %d groups", c.name, p.column, p.rowGap, p.rows, p.groups)
		}
		if c.groups > 1 && (p.group != walk{c.groups, c.rows * c.row.stride} || p.outGroup != walk{c.groups, c.rows * 7} || p.outRow.steps != c.rows) {
			t.Errorf("%s: groups %+v, of stores %+v, rows %+v", c.name, p.group, p.outGroup, p.outRow)
		}
	}
	for _, c := range []struct {
		name          string
		group, filter walk
		want          walk
		gap           int
		ok            bool
	}{
		{"not crowded", walk{6, 1200}, walk{3, 400}, walk{3, 400}, 0, true},
		{"far", walk{6, 2400}, walk{3, 400}, walk{36, 400}, 3, true},
		{"far, one filter row", walk{6, 2400}, walk{1, 400}, walk{1, 400}, 0, true},
		{"no integer", walk{6, 2500}, walk{3, 400}, walk{}, 0, false},
	} {
		p := &runPlanner{group: c.group, filterRow: c.filter}
		err := p.joinGroups()
		if (err == nil) != c.ok || c.ok && (p.filterRow != c.want || p.filterGap != c.gap) {
			t.Errorf("groups, %s: %+v, gap %d, %v", c.name, p.filterRow, p.filterGap, err)
		}
	}
}

// Runs without instructions that do nothing take exactly two and a stall a product, two
// and a stall a result, and one a channel for each part.
func TestDepthwiseExact(t *testing.T) {
	t.Parallel()
	tried, padded, several := 0, 0, 0
	for _, n := range []int{7, 20, 33, 60} {
		for f := 1; f <= 5; f++ {
			for stride := 1; stride <= 4; stride++ {
				for _, c := range []int{1, 4, 6} {
					for _, multiplier := range []int{1, 2, 3} {
						for _, same := range []bool{false, true} {
							w := window1(n, c, f, stride, c*multiplier)
							w.DepthMultiplier, w.H = multiplier, n+stride
							w.OH = (w.H-f)/stride + 1
							if same {
								w.OH, w.OW = ceilDiv(w.H, stride), ceilDiv(w.W, stride)
								w.samePadding()
							}
							got, err := depthwise(w)
							if err != nil || got.NoOps > 0 {
								continue
							}
							tried++
							// results of a pixel, pairs where they are even in number
							stored := int64(c * multiplier)
							if multiplier%2 == 0 {
								stored /= 2
							}
							results, products := stored*int64(w.OH*w.OW), stored*taps(&w)
							if got.Stores != results || got.pixels != int64(w.OH*w.OW) || got.Stalls != products+results || got.Instructions != stored*got.segments+2*products+2*results {
								t.Fatalf("%+v:\n%+v, want %d results of %d products", w, *got, results, products)
							}
							if w.PadY > 0 && stride > 1 {
								padded++
							}
							if got.Programs > got.segments {
								several++
							}
						}
					}
				}
			}
		}
	}
	if tried < 100 || padded < 5 {
		t.Errorf("%d geometries, %d padded with steps, %d with a program a channel", tried, padded, several)
	}
}

// The smaller half of the padding is in front: none where there is one in all.
func TestPaddingBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, f, stride, want int }{{5, 1, 1, 0}, {5, 2, 1, 0}, {5, 3, 1, 1}, {6, 2, 2, 0}, {4, 4, 2, 1}, {3, 1, 3, 0}} {
		w := Window{H: c.n, W: c.n, FH: c.f, FW: c.f, StrideX: c.stride, StrideY: c.stride, DilationX: 1, DilationY: 1, OH: ceilDiv(c.n, c.stride), OW: ceilDiv(c.n, c.stride)}
		w.samePadding()
		if w.PadX != c.want || w.PadY != c.want {
			t.Errorf("%+v: %d and %d in front", c, w.PadX, w.PadY)
		}
	}
}
