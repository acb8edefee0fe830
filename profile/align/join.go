package align

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// sameNodes reports whether positions of nodes mean the same in both models.
func sameNodes(a, b *profile.Model) bool {
	if a.StructureSHA256 != "" && b.StructureSHA256 != "" {
		return a.StructureSHA256 == b.StructureSHA256
	}
	return a.SHA256 == "" || b.SHA256 == "" || a.SHA256 == b.SHA256
}

// found says how layers of a group were found.
type found struct {
	how     profile.Confidence
	guessed bool // nothing says that it is certain
	// exchanged says that the operands come from other layers' partners.
	exchanged bool
	region    bool // see [Pair.Region]
}

// joiner gathers layers of both profiles in groups; those of b come after those of a.
type joiner struct {
	a, b  *profile.Profile
	group []int         // a member of the same group nearer to its root
	found map[int]found // by root
	types [2]types
	// recorded says that another tool wrote one of the profiles.
	recorded bool
	// nodes says that positions of nodes mean the same in both profiles: they are of one model.
	nodes bool
	// file says that both are known to be of one file: weights and options are the same.
	file bool
}

func newJoiner(a, b *profile.Profile) *joiner {
	j := &joiner{a: a, b: b, group: make([]int, len(a.Layers)+len(b.Layers)), found: map[int]found{}, types: [2]types{typesOf(a), typesOf(b)}, recorded: recorded(a) || recorded(b), file: known(a.Model.SHA256, b.Model.SHA256)}
	for i := range j.group {
		j.group[i] = i
	}
	return j
}

func (j *joiner) root(i int) int {
	for j.group[i] != i {
		j.group[i] = j.group[j.group[i]]
		i = j.group[i]
	}
	return i
}

func (j *joiner) join(x, y int, f found) {
	x, y = j.root(x), j.root(y)
	for _, r := range []int{x, y} {
		f = found{weaker(j.found[r].how, f.how), f.guessed || j.found[r].guessed, f.exchanged || j.found[r].exchanged, f.region || j.found[r].region}
	}
	if x > y {
		x, y = y, x
	}
	j.group[y] = x
	j.found[x] = f
}

// sureness is the order of confidences, the surest first; an empty one stands for nothing said.
var sureness = []profile.Confidence{"", profile.Exact, profile.ByTensor, ByStructure, profile.ByName, profile.ByOrder, profile.Unknown}

// weaker is the less sure of two.
func weaker(a, b profile.Confidence) profile.Confidence {
	if slices.Index(sureness, a) > slices.Index(sureness, b) {
		return a
	}
	return b
}

// Weaker returns the less sure of two confidences. An empty one stands for nothing said.
func Weaker(a, b profile.Confidence) profile.Confidence { return weaker(a, b) }

// side is 0 for layers of a, 1 for those of b.
func (j *joiner) side(i int) int {
	if i < len(j.a.Layers) {
		return 0
	}
	return 1
}

func (j *joiner) layer(i int) *profile.Layer {
	if i < len(j.a.Layers) {
		return &j.a.Layers[i]
	}
	return &j.b.Layers[i-len(j.a.Layers)]
}

// byNodes joins layers that lead back to the same node, and reports whether layers of both
// profiles do.
func (j *joiner) byNodes() bool {
	type first struct {
		layer int
		how   profile.Confidence
	}
	nodes := map[[2]int64]first{}
	both := false
	for i := range j.group {
		p := j.layer(i).Provenance
		if p == nil {
			continue
		}
		for _, s := range p.SourceNodes {
			k, how := [2]int64{s.Graph, s.Node}, cmp.Or(s.Confidence, p.Confidence)
			f, ok := nodes[k]
			if !ok {
				nodes[k] = first{i, how}
				continue
			}
			how = weaker(how, f.how)
			j.join(i, f.layer, found{how: how, guessed: how != profile.Exact && how != profile.ByTensor})
			both = both || j.side(i) != j.side(f.layer)
		}
	}
	return both
}

// fused joins a layer with the one that does its work where the other profile runs it by itself:
// that one's time is for both.
func (j *joiner) fused() {
	runs := map[int]int{} // by root: which sides run a layer of the group
	var open []int        // fused layers to look at
	for i := range j.group {
		if !j.layer(i).State.Elsewhere() {
			runs[j.root(i)] |= 1 + j.side(i)
		}
		if j.layer(i).FusedInto != nil {
			open = append(open, i)
		}
	}
	waiting := map[int][]int{} // by root: those whose other side does not run the layer yet
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		to := int(*j.layer(i).FusedInto)
		if j.side(i) == 1 {
			to += len(j.a.Layers)
		}
		from, other := j.root(i), 2-j.side(i)
		if runs[from]&other == 0 {
			waiting[from] = append(waiting[from], i)
			continue
		}
		if to < 0 || to >= len(j.group) || j.root(to) == from {
			continue
		}
		into := j.root(to)
		j.join(i, to, found{})
		both := runs[from] | runs[into]
		for _, r := range []int{from, into} {
			if runs[r] != both { // a layer waits for two changes at most
				open = append(open, waiting[r]...)
				delete(waiting, r)
			}
		}
		r := j.root(i)
		runs[r] = both
		if x, y := waiting[from], waiting[into]; len(x) > len(y) {
			waiting[r] = append(x, y...)
		} else {
			waiting[r] = append(y, x...)
		}
		delete(waiting, from+into-r) // the root that is none any more
	}
}

// alone reports whether a layer has no partner in the other profile yet.
func (j *joiner) alone() func(i int) bool {
	sides := map[int]int{}
	for i := range j.group {
		sides[j.root(i)] |= 1 + j.side(i)
	}
	return func(i int) bool { return sides[j.root(i)] != 3 }
}

// key is what layers that are joined have in common; ok is false for a layer that is left out.
type key func(l *profile.Layer) (k [3]string, ok bool)

func operatorAndName(l *profile.Layer) ([3]string, bool) {
	return [3]string{l.Graph, l.Op, l.Name}, l.Name != ""
}

func operator(l *profile.Layer) ([3]string, bool) { return [3]string{l.Graph, l.Op}, true }

func classAndName(l *profile.Layer) ([3]string, bool) {
	name := plainName(l.Name)
	return [3]string{l.Graph, classOf(l.Op), name}, name != "" && !numbered.MatchString(name)
}

func coreClass(l *profile.Layer) ([3]string, bool) {
	class := classOf(l.Op)
	return [3]string{l.Graph, class}, roles[class] == core
}

// sets gathers the layers without a partner of both sides by a key.
func (j *joiner) sets(k key) map[[3]string]*[2][]int {
	alone := j.alone()
	out := map[[3]string]*[2][]int{}
	for i := range j.group {
		key, ok := k(j.layer(i))
		if !ok || !alone(i) {
			continue
		}
		s := out[key]
		if s == nil {
			s = new([2][]int)
			out[key] = s
		}
		s[j.side(i)] = append(s[j.side(i)], i)
	}
	return out
}

// byName joins what is left where a key stands for one layer alone on either side.
func (j *joiner) byName(k key) {
	for _, s := range j.sets(k) {
		if len(s[0]) == 1 && len(s[1]) == 1 {
			j.join(s[0][0], s[1][0], found{how: profile.ByName, guessed: true})
		}
	}
}

// byOrder joins what is left where both profiles have as many layers of a kind left.
func (j *joiner) byOrder(k key) {
	for _, s := range j.sets(k) {
		if len(s[0]) != len(s[1]) {
			continue
		}
		for n := range s[0] {
			j.join(s[0][n], s[1][n], found{how: profile.ByOrder, guessed: true})
		}
	}
}

// pairs makes pairs of the groups.
func (j *joiner) pairs() []Pair {
	var out []Pair
	at := map[int]int{}
	for i := range j.group {
		r := j.root(i)
		k, ok := at[r]
		if !ok {
			k = len(out)
			at[r] = k
			out = append(out, Pair{Confidence: j.found[r].how, Certain: !j.found[r].guessed, Region: j.found[r].region})
		}
		if i < len(j.a.Layers) {
			out[k].A = append(out[k].A, int64(i))
		} else {
			out[k].B = append(out[k].B, int64(i-len(j.a.Layers)))
		}
	}
	made := newTensors(j)
	for i := range out {
		p := &out[i]
		if p.Kind = j.kind(p); p.Kind == Same && (j.found[j.root(j.first(p))].exchanged || made.exchanged(p)) {
			p.Kind = Replaced
		}
		if len(p.A) == 0 || len(p.B) == 0 {
			p.Confidence, p.Certain, p.Region = profile.Unknown, false, false
		}
	}
	return out
}

// first is a member of the group that a pair is made of.
func (j *joiner) first(p *Pair) int {
	if len(p.A) > 0 {
		return int(p.A[0])
	}
	return len(j.a.Layers) + int(p.B[0])
}
