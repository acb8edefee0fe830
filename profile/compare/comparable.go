package compare

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// limits lists by topic the differences with which figures say nothing about the model or engine.
var limits = map[Topic][]NoteCode{
	Time:     {OtherKind, OtherMachine, OtherShapes, OtherBatch, ColdRun, UnknownThreads, NotWhole},
	Energy:   {OtherKind, OtherMachine, OtherShapes, OtherBatch, ColdRun, UnknownThreads, NotWhole},
	Memory:   {OtherShapes, OtherBatch},
	Work:     {OtherShapes, OtherBatch},
	Accuracy: {OtherInputs},
}

// Topics are the groups of figures, in the order of reports.
var Topics = []Topic{Time, Energy, Memory, Size, Work, Accuracy}

// Limited lists the topics that do not compare between runs that a note is about.
func Limited(code NoteCode) (out []Topic) {
	for _, t := range Topics {
		if slices.Contains(limits[t], code) {
			out = append(out, t)
		}
	}
	return out
}

// topicOf is the topic of a quantity. What divides by time is a time.
func topicOf(q *profile.Quantity) Topic {
	if q.Derived() {
		worst := Work
		for _, key := range slices.Concat(q.Of, q.Per) {
			if x, ok := profile.Lookup(key); ok {
				if t := topicOf(&x); t == Time || t == Energy && worst == Work {
					worst = t
				}
			}
		}
		return worst
	}
	for i := range wholeRows {
		if wholeRows[i].key == q.Key {
			return wholeRows[i].topic
		}
	}
	switch {
	case q.Key == "bytes_read" || q.Key == "bytes_written" || q.Group == "Work":
		return Work
	case q.Group == "Memory":
		return Memory
	case q.Group == "Sparsity":
		return Size
	case q.Group == "Accuracy":
		return Accuracy
	}
	return Time
}

// compares finds in what the profiles differ, and which figures do not compare with those of the
// first run for it. The first reason of a topic counts.
func (b *builder) compares() {
	first := b.ps[0]
	b.found = map[NoteCode][]int{}
	for k, p := range b.ps {
		b.add(NotWhole, k, len(p.Incomplete) > 0)
		if k == 0 {
			continue
		}
		b.add(OtherKind, k, origin(first.Target.Kind) != origin(p.Target.Kind))
		machines := otherMachine(first, p)
		b.add(OtherMachine, k, machines && !oneModel(&first.Model, &p.Model))
		b.add(Machines, k, machines && oneModel(&first.Model, &p.Model))
		b.add(OtherShapes, k, !sameShapes(first.Model.Inputs, p.Model.Inputs))
		b.add(OtherBatch, k, apart(first.Settings.Batch, p.Settings.Batch))
		b.add(OtherInputs, k, otherInputs(first, p))
		b.add(OtherThreads, k, apart(first.Settings.Threads, p.Settings.Threads))
		b.add(UnknownThreads, k, runsHere(first) && runsHere(p) && (first.Settings.Threads == nil) != (p.Settings.Threads == nil))
		b.add(ColdRun, k, cold(first) != cold(p))
	}
	b.whyNot = make([]map[Topic]NoteCode, len(b.ps))
	for k := range b.ps {
		for _, t := range Topics {
			for _, code := range slices.Backward(limits[t]) {
				if runs := b.found[code]; k > 0 && (slices.Contains(runs, k) || slices.Contains(runs, 0)) {
					if b.whyNot[k] == nil {
						b.whyNot[k] = map[Topic]NoteCode{}
					}
					b.whyNot[k][t] = code
				}
			}
		}
	}
}

func (b *builder) add(code NoteCode, k int, yes bool) {
	if yes {
		b.found[code] = append(b.found[code], k)
	}
}

// origin is how figures come about as far as they compare: both those of this computer and those
// of a board were measured.
func origin(k profile.TargetKind) profile.TargetKind {
	if k == profile.TargetDevice {
		return profile.TargetHost
	}
	return k
}

// otherMachine reports whether figures were measured on machines that are known to differ.
// Estimates for other chips compare: the chip is what they are about.
func otherMachine(a, b *profile.Profile) bool {
	x, y := a.Target.Kind, b.Target.Kind
	switch {
	case origin(x) != profile.TargetHost || origin(y) != profile.TargetHost:
		return false
	case x != y:
		return true
	case x == profile.TargetDevice:
		return a.Target.ID != b.Target.ID
	}
	return a.Host != nil && b.Host != nil && a.Host.Fingerprint != "" && b.Host.Fingerprint != "" && a.Host.Fingerprint != b.Host.Fingerprint
}

// oneModel reports whether two models are known to be the same: other machines then are what a
// comparison is about.
func oneModel(a, b *profile.Model) bool {
	return a.StructureSHA256 != "" && a.StructureSHA256 == b.StructureSHA256 || a.SHA256 != "" && a.SHA256 == b.SHA256
}

// runsHere reports whether the times of a profile are those of a processor with a choice of
// threads.
func runsHere(p *profile.Profile) bool {
	_, m := p.Cost()
	return m != nil && (p.Target.Kind == profile.TargetHost || p.Target.Kind == profile.TargetImport)
}

// cold reports whether the time of a profile is that of a single inference that found caches and
// buffers cold: nothing warmed up before it, as far as the profile says.
func cold(p *profile.Profile) bool {
	_, m := p.Cost()
	if m == nil || m.Kind != profile.Measured || p.Target.Kind == profile.TargetDevice || m.N == nil || *m.N != 1 {
		return false
	}
	ph := p.Phases
	return ph == nil || ph.Warmup == nil || ph.Warmup.Count == nil || *ph.Warmup.Count == 0
}
