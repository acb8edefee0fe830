package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// headline is the answer in a few lines: what ran where, its latency, where the time goes, what
// bounds it, what memory it needs, and what to do next. It is empty for a profile without a latency
// or another cost, which [summary] describes.
func headline(p *profile.Profile) (title string, fs []fact) {
	cost := latencyLine(p)
	if cost.value == "" {
		return "", nil
	}
	add := func(label, value string) {
		if value != "" {
			fs = append(fs, fact{label, text.Clean(value)})
		}
	}
	if len(p.Model.Signatures) > 1 {
		add("Signature", signature(&p.Model))
	}
	if phases := phaseLines(p); phases != nil {
		fs = append(fs, phases...)
	} else {
		add(cost.label, cost.value)
	}
	for _, f := range shapeFacts(p) {
		add(f.label, f.value)
	}
	add("Energy", metric(p.Totals.Energy, "J"))
	add("Under load", underLoad(p))
	add("Response", response(p))
	add("Cold", cold(p))
	add("Operators", operatorsLine(p))
	return text.Clean(modelFile(p)) + text.Clean(where(p)), append(fs, answerLines(p)...)
}

// slowest names the first layers by time with their shares, until they have three quarters of it,
// and the places that each may have. Layers with the same places stand together. It is empty where
// no order is known.
func slowest(p *profile.Profile) string {
	const most, enough = 3, 0.75
	var parts []string
	before, sum := "", 0.0
	for _, t := range p.Slowest(most) {
		l := t.Layer
		at := profile.RankText(l.Rank)
		if at == "" || l.Share == nil || l.ShareCI95 == nil {
			return ""
		}
		if sum >= enough && at != before {
			break
		}
		sum += *l.Share
		iv := l.ShareCI95
		s := fmt.Sprintf("#%d %s %.1f ± %s", l.Index, l.OpText(), 100**l.Share, Percent(max(iv[1]-*l.Share, *l.Share-iv[0])))
		if at == before {
			parts[len(parts)-1] += ", " + s
			continue
		}
		parts, before = append(parts, at+" "+s), at
	}
	return strings.Join(parts, " · ")
}

// answerLines are the lines of the headline that the page shows too: the speeds, the
// slowest layers, whose shares they are, what bounds the model, what memory it needs, and what to
// do next.
func answerLines(p *profile.Profile) (fs []fact) {
	for _, f := range []fact{{"Speeds", words.Modes(p, Duration)}, {"Slowest", slowest(p)}, {"Shares", sharesLine(p)}, {"Bottleneck", bottleneck(p)}, {"Memory", memoryLine(p)}, {"Next step", nextStep(p)}} {
		if f.value != "" {
			fs = append(fs, fact{f.label, text.Clean(f.value)})
		}
	}
	return fs
}

// modelFile is the name of the model with the ending of its format.
func modelFile(p *profile.Profile) string {
	name, format := p.Model.Name, p.Model.Format
	switch {
	case name == "":
		return "Model"
	case (format == "tflite" || format == "onnx") && !strings.HasSuffix(name, "."+format):
		return name + "." + format
	}
	return name
}

// where says on what the model ran, or for what it was estimated.
func where(p *profile.Profile) string {
	t := &p.Target
	var how []string
	add := func(s string) {
		if s != "" {
			how = append(how, s)
		}
	}
	on := " on " + t.ID
	if t.ID == "device" {
		on = " on a device"
	}
	switch t.Kind {
	case profile.TargetHost:
		on = " on this computer"
		if n := p.Settings.Threads; n != nil {
			add(words.Plural(*n, "thread"))
		}
		if t.Engine != "opmeter" {
			add(engineRelease(t.Engine, p.Settings.EngineVersion))
		} else {
			add(p.Settings.KernelSet)
		}
	case profile.TargetImport:
		on = ", imported from " + cmp.Or(t.Engine, t.ID)
	default:
		add(t.Engine)
		if t.ClockHz != nil {
			add(Quantity(*t.ClockHz, "Hz"))
		}
		switch key, _ := p.Cost(); {
		case t.Kind == profile.TargetSimulator:
			add("estimate")
		case key == "instructions":
			add("instructions counted")
		default:
			add("measured")
		}
	}
	if len(how) > 0 {
		on += " (" + strings.Join(how, ", ") + ")"
	}
	return on
}

// latencyLine is the recommended latency with its interval and quality; of a target without one the
// count that stands for it.
func latencyLine(p *profile.Profile) fact {
	key, m := p.Cost()
	if m == nil {
		return fact{}
	}
	q, _ := profile.Lookup(key)
	label, show := capital(cmp.Or(q.Name, "latency")), inUnit(&q)
	if key == "latency_s" {
		label = "Latency"
	}
	var note []string
	if name := words.Quote(p.Trust); name != "" && key == "latency_s" {
		if r := p.Totals.Figure(p.Trust.Quote); r != nil {
			if _, ok := r.Best(); ok {
				m = r
				note = append(note, name)
			}
		}
	}
	v, ok := m.Best()
	if !ok {
		return fact{}
	}
	s := show(v)
	iv := m.Interval()
	switch {
	case iv != nil && iv == m.Band:
		note = append(note, "90 % band "+Range(iv[0], iv[1], show))
	case iv != nil && show(iv[0]) == show(iv[1]): // to the digits that are shown
	case iv != nil:
		note = append(note, "95 % CI "+Range(iv[0], iv[1], show))
	case m.N != nil:
		note = append(note, strings.TrimSpace(m.Estimator()+" of "+runs(*m.N)))
	case !slices.Contains([]string{"", "value"}, m.Estimator()):
		note = append(note, m.Estimator())
	}
	if len(note) > 0 {
		s += " (" + strings.Join(note, ", ") + ")"
	}
	if q := words.Quality(p.Trust); q != "" {
		s += " · quality: " + q
	}
	if f := fitsLine(p); f != "" {
		s += " · " + f
	}
	if w := words.Without(p); w != "" {
		s += " · " + w
	}
	return fact{label, s}
}

// operatorsLine is [operators] with the reason to doubt the shares.
func operatorsLine(p *profile.Profile) string {
	s := operators(p)
	if why := words.SharesDoubt(p.Trust); s != "" && why != "" {
		s += " · unsettled: " + why
	}
	return s
}

// fitsLine says whether the target's memories hold the model, "" where that is not known.
func fitsLine(p *profile.Profile) string {
	memories := map[string]string{"target.ram": "RAM", "target.flash": "flash"}
	by := map[profile.Severity][]string{}
	for _, f := range p.Findings {
		if f.ID == "target.refused" {
			return "the runtime does not load this model"
		}
		if name := memories[f.ID]; name != "" {
			by[f.Severity] = append(by[f.Severity], name)
		}
	}
	list := func(s profile.Severity) string { return strings.Join(by[s], " and ") }
	switch {
	case len(by[profile.Problem]) > 0:
		return "does not fit: too little " + list(profile.Problem)
	case len(by[profile.Warning]) > 0:
		return list(profile.Warning) + " may not suffice"
	case len(by[profile.Info]) > 0:
		return "fits in " + list(profile.Info)
	}
	return ""
}

// memoryLine is the memory that the model needs: figures of working memory, and storage.
func memoryLine(p *profile.Profile) string {
	var parts []string
	for i, m := range memories(p) {
		if m.name != "RAM" || i == 0 { // beside the peak, the details have this engine's own
			parts = append(parts, m.name+" "+m.value)
		}
	}
	if f := flash(p); f != "" {
		parts = append(parts, "flash "+f)
	}
	return strings.Join(parts, " · ")
}

// nextStep is the most useful thing to do next.
func nextStep(p *profile.Profile) string {
	for _, f := range p.Findings {
		if f.Severity == profile.Problem {
			return "see the problem in the findings below"
		}
	}
	switch p.Target.Kind {
	case profile.TargetHost:
		if _, a := words.Reason(p.Trust); a != "" {
			return a
		}
		n, cpus := p.Settings.Threads, hostCPUs(p)
		if n != nil && *n == 1 && cpus > 1 {
			return fmt.Sprintf("try --threads 2 (of %d CPUs) and opmeter compare", cpus)
		}
		if p.Target.Engine == "opmeter" {
			return "compare with the engine that you ship: opmeter profile " + shellword.Quote(cmp.Or(p.Model.Path, modelFile(p))) + " --engine opmeter," + shippedEngine(p)
		}
	case profile.TargetSimulator:
		return "measure on the board: --on device:PORT (opmeter devices lists ports)"
	case profile.TargetDevice:
		return "compare with an estimate or another run: opmeter compare A B"
	case profile.TargetImport:
		return "see the timeline: -o page.html"
	}
	return ""
}

// hostCPUs is the number of CPUs that the process may use, 0 where that is not known.
func hostCPUs(p *profile.Profile) int64 {
	h := p.Host
	switch {
	case h == nil:
		return 0
	case len(h.AffinityCPUs) > 0:
		return int64(len(h.AffinityCPUs))
	case h.CPUs != nil:
		return *h.CPUs
	}
	return 0
}

// engineRelease names an engine with its version, which the engine's name may contain already.
func engineRelease(engine, version string) string {
	if strings.HasSuffix(engine, " "+version) {
		return strings.TrimSpace(engine)
	}
	return strings.TrimSpace(engine + " " + version)
}
