// Package track is shared by importers of traces. A trace has slices of time on tracks: threads,
// streams, queues. The package nests slices and computes their own time, connects them by arrows,
// adds the times of layers and makes the timeline.
//
// It is independent of any format. The importer sets the layer and the iteration of a slice when
// it adds it, or between [Trace.Nest] and [Trace.Tally].
package track

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Limits of a trace: without them, memory would grow with the file.
const (
	MaxSlices     = 3_000_000
	MaxPoints     = 500_000 // values of all counters
	MaxLayers     = 50_000
	maxTracks     = 20_000
	maxCounters   = 10_000
	maxNames      = 100_000   // different texts
	maxName       = 16 << 10  // bytes of a text
	maxRows       = 64        // rows of a track whose slices overlap in part
	maxMarks      = 4_000_000 // beginnings and ends of slices
	maxArrowEnds  = 1_000_000
	maxLinks      = 250_000     // arrows of the timeline
	maxIterations = 1_000_000   // iterations with separate times
	most          = int64(4e18) // nanoseconds; the difference of two times fits into 64 bits
)

// Slice is an interval of time on a track.
type Slice struct {
	// Start is a time of the trace's clock, Dur a duration, both in nanoseconds. Dur is -1 if the
	// end is unknown: the slice then lasts until the end of its track and counts in no figure.
	Start, Dur int64
	// Bytes is the number of bytes moved, -1 if unknown.
	Bytes int64
	// Layer is an index of the importer's layers, Iteration a number from 0; -1 without one.
	Layer, Iteration int32
	// Label and Type are numbers of [Trace.Name], -1 for those of the layer.
	Label, Type int32
	// Extra is the index in [Trace.Extras] plus 1, 0 without extras.
	Extra int32
	// Open says that the end is unknown.
	Open bool
	seq  int32
}

// End returns Start + Dur.
func (s *Slice) End() int64 { return s.Start + s.Dur }

// Extra holds properties that few slices have.
type Extra struct {
	// Subnet and Direction are texts, "" if unknown.
	Subnet, Direction string
	// Stall is in seconds, Utilisation from 0 to 1; both are negative if unknown.
	Stall, Utilisation float64
	// Figures are by key of the quantity.
	Figures map[string]float64
}

// Track holds slices that nest.
type Track struct {
	Kind timeline.LaneKind
	// Group is the process or device.
	Group, Name string
	// GroupRank and Rank order groups, and the tracks of a group; the smallest is first.
	GroupRank, Rank int64
	// Aside tracks hold activity beside the threads, such as pending requests. Their slices do
	// not count in the times of layers.
	Aside bool
	// Slices are ordered by start after [Trace.Nest], the outer one first.
	Slices []Slice
	// Parents holds the slice around each slice, -1 without one. Self is the time of each slice
	// without the slices in it, in nanoseconds. [Trace.Nest] sets both.
	Parents []int32
	Self    []int64

	row  []uint8 // row of each slice, nil without overlap
	rows int
	positions
}

// positions holds the positions of slices in the timeline.
type positions struct {
	lane []int32 // of each slice, -1 if dropped
	bar  []int32
}

// Link is an arrow between slices: indices of [Trace.Tracks] and [Track.Slices].
type Link struct{ FromTrack, From, ToTrack, To int32 }

// Trace collects tracks. The zero value is ready.
type Trace struct {
	// Limit is the maximum number of bars of the timeline, 0 for [runlog.MaxBars].
	Limit int
	// Tracks are in the order of creation.
	Tracks []*Track
	// Extras are those of slices.
	Extras []Extra
	// Links are arrows between slices, set after [Trace.Nest].
	Links []Link
	// Counters are in the order of creation.
	Counters []*Counter
	// Dropped counts skipped data.
	Dropped runlog.Dropped

	names  map[string]int32
	list   []string
	count  int
	points int
	marks  int
	open   int64
}

// Nanos converts a time in units of unit nanoseconds. ok is false if it does not fit, or if unit
// is 0 because the value is not a time.
func Nanos(v, unit float64) (ns int64, ok bool) {
	v *= unit
	if !(math.Abs(v) < float64(most)) || unit == 0 {
		return 0, false
	}
	return int64(math.Round(v)), true
}

// Track adds a track and returns its number, beyond the limit that of the last track.
func (t *Trace) Track(kind timeline.LaneKind, group, name string) int32 {
	if len(t.Tracks) >= maxTracks {
		return int32(len(t.Tracks) - 1)
	}
	t.Tracks = append(t.Tracks, &Track{Kind: kind, Group: group, Name: name})
	return int32(len(t.Tracks) - 1)
}

// Name returns the number of a text, -1 if it is empty or if there are too many texts.
func (t *Trace) Name(s []byte) int32 {
	if i, ok := t.names[string(s)]; ok {
		return i
	}
	if len(s) == 0 || len(t.list) >= maxNames {
		return -1
	}
	if t.names == nil {
		t.names = map[string]int32{}
	}
	i := int32(len(t.list))
	t.names[string(s)] = i
	t.list = append(t.list, Clip(s))
	return i
}

// Text returns the text of a number of [Trace.Name], "" for -1.
func (t *Trace) Text(n int32) string {
	if n < 0 {
		return ""
	}
	return t.list[n]
}

// Add adds a slice to a track and returns its number in the order of adding. Slices with an
// invalid time, and those beyond [MaxSlices], are dropped: the result is -1.
func (t *Trace) Add(track int32, s Slice) (seq int32) {
	if t.count >= MaxSlices {
		t.Dropped.Add("slices beyond the first 3,000,000", 1)
		return -1
	}
	if s.Start < -most || s.Start > most || s.Dur > most || s.Dur < -1 {
		t.Dropped.Add("slices without a time that can be", 1)
		return -1
	}
	t.count++
	if s.Dur < 0 {
		s.Open = true
	}
	k := t.Tracks[track]
	s.seq = int32(len(k.Slices))
	k.Slices = append(k.Slices, s)
	return s.seq
}

// Opened returns the number of slices without an end. Call it after [Trace.Nest].
func (t *Trace) Opened() int64 { return t.open }

// Extra adds an extra and returns the value of [Slice.Extra].
func (t *Trace) Extra(x Extra) int32 {
	t.Extras = append(t.Extras, x)
	return int32(len(t.Extras))
}

// Nest sorts the slices of all tracks and finds the slice around each.
func (t *Trace) Nest() {
	for i := range t.Tracks {
		t.NestOne(int32(i))
	}
}

// NestOne is [Trace.Nest] for one track, such as one that was added later.
func (t *Trace) NestOne(track int32) {
	k := t.Tracks[track]
	t.open += k.close()
	if !slices.IsSortedFunc(k.Slices, order) {
		slices.SortFunc(k.Slices, order)
	}
	t.Dropped.Add("ends of slices that overlap more than 64 times", k.nest())
}

// order sorts by start, the longer slice first, then by the order of adding.
func order(a, b Slice) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Dur, a.Dur), cmp.Compare(a.seq, b.seq))
}

// close ends open slices at the end of the track and counts them.
func (k *Track) close() (open int64) {
	end := int64(math.MinInt64)
	for i := range k.Slices {
		end = max(end, k.Slices[i].Start+max(0, k.Slices[i].Dur))
		if k.Slices[i].Open {
			open++
		}
	}
	if open > 0 {
		for i := range k.Slices {
			if s := &k.Slices[i]; s.Open {
				s.Dur = min(end-s.Start, most)
			}
		}
	}
	return open
}

// nest sets parents, own times and rows. cut counts slices that were shortened to the end of the
// slice around them.
func (k *Track) nest() (cut int64) {
	n := len(k.Slices)
	k.Parents, k.Self = make([]int32, n), make([]int64, n)
	k.row, k.rows = nil, 0
	var under [][]int32 // open slices of each row, the innermost last
	for i := range k.Slices {
		s := &k.Slices[i]
		row := -1
		for r := range under {
			u := under[r]
			for len(u) > 0 && k.Slices[u[len(u)-1]].End() <= s.Start {
				u = u[:len(u)-1]
			}
			under[r] = u
			if len(u) == 0 || s.End() <= k.Slices[u[len(u)-1]].End() {
				row = r
				break
			}
		}
		switch {
		case row >= 0:
		case len(under) < maxRows:
			row = len(under)
			under = append(under, nil)
		default:
			row = 0
			s.Dur = k.Slices[under[0][len(under[0])-1]].End() - s.Start
			cut++
		}
		k.Parents[i], k.Self[i] = -1, s.Dur
		if u := under[row]; len(u) > 0 {
			p := u[len(u)-1]
			k.Parents[i] = p
			if !s.Open {
				k.Self[p] -= s.Dur
			}
		}
		under[row] = append(under[row], int32(i))
		if row > 0 && k.row == nil {
			k.row = make([]uint8, n)
		}
		if k.row != nil {
			k.row[i] = uint8(row)
		}
	}
	k.rows = len(under)
	return cut
}

// At returns the innermost slice of a track at a time (ends included), -1 without one.
func (k *Track) At(ts int64) int32 {
	n := sort.Search(len(k.Slices), func(i int) bool { return k.Slices[i].Start > ts })
	best := int32(-1)
	// Slices of other rows may precede; each row has its own nesting.
	for i, looks := n-1, 1+8*(k.rows-1); i >= 0 && looks > 0; i, looks = i-1, looks-1 {
		for j := int32(i); j > best; j = k.Parents[j] {
			if k.Slices[j].End() >= ts {
				best = j
				break
			}
		}
	}
	// An empty slice without a layer is a mark in the slice around it.
	for best >= 0 && k.Slices[best].Dur == 0 && k.Slices[best].Layer < 0 && k.Parents[best] >= 0 {
		best = k.Parents[best]
	}
	return best
}

// Next returns the first slice of a track that starts at ts or later, -1 without one.
func (k *Track) Next(ts int64) int32 {
	n := sort.Search(len(k.Slices), func(i int) bool { return k.Slices[i].Start >= ts })
	if n >= len(k.Slices) {
		return -1
	}
	return int32(n)
}

// Places returns the index of each slice by its number from [Trace.Add], -1 if it was removed.
func (k *Track) Places() []int32 {
	most := int32(-1)
	for i := range k.Slices {
		most = max(most, k.Slices[i].seq)
	}
	out := slices.Repeat([]int32{-1}, int(most)+1)
	for i := range k.Slices {
		out[k.Slices[i].seq] = int32(i)
	}
	return out
}

// Span returns the start of the first slice and the end of the last one on the tracks that take
// selects.
func (t *Trace) Span(take func(*Track) bool) (start, end int64, ok bool) {
	start, end = math.MaxInt64, math.MinInt64
	for _, k := range t.Tracks {
		if len(k.Slices) == 0 || !take(k) {
			continue
		}
		ok = true
		for i := range k.Slices {
			start, end = min(start, k.Slices[i].Start), max(end, k.Slices[i].End())
		}
	}
	if !ok {
		return 0, 0, false
	}
	return start, end, true
}

// All iterates over the slices of all tracks.
func (t *Trace) All() iter.Seq2[*Track, *Slice] {
	return func(yield func(*Track, *Slice) bool) {
		for _, k := range t.Tracks {
			for i := range k.Slices {
				if !yield(k, &k.Slices[i]) {
					return
				}
			}
		}
	}
}

// Sorted returns a list in stable order, and the new index of each element.
func Sorted[T any](list []T, compare func(a, b *T) int) (sorted []T, to []int32) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(&list[a], &list[b]) })
	sorted, to = make([]T, len(list)), make([]int32, len(list))
	for i, from := range order {
		sorted[i], to[from] = list[from], int32(i)
	}
	return sorted, to
}

// Relabel replaces the layer of each slice by the element of to at that index.
func (t *Trace) Relabel(to []int32) {
	for _, s := range t.All() {
		if s.Layer >= 0 && int(s.Layer) < len(to) {
			s.Layer = to[s.Layer]
		}
	}
}
