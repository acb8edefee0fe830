package perfetto

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// finish makes the profile.
func (b *reader) finish(run *runlog.Run) {
	p := run.Profile
	for _, p := range b.order {
		b.trace.Pair(&p.Pending)
	}
	b.name()
	if b.written && b.owned > 0 {
		b.ours(run)
	} else {
		b.foreign(run)
	}
	if n := b.trace.Opened(); n > 0 {
		run.Found("import.open", profile.Warning, "%d slices have a beginning and no end: they are shown until the end of their track, and count in no figure.", n)
	}
	if b.others > 0 {
		run.Found("import.others", profile.Info, "%d parts of the trace are of data sources other than track events, and are not read.", b.others)
	}
	if len(p.Layers) == 0 && p.Timeline == nil {
		run.Found("import.empty", profile.Warning, "The trace has no track events.")
	}
	b.trace.Dropped.To(run)
}

func (b *reader) foreign(run *runlog.Run) {
	for k, s := range b.trace.All() {
		k.Kind = cmp.Or(k.Kind, timeline.Thread)
		if b.written && s.Layer < 0 && s.Label >= 0 {
			s.Layer = b.layers.Of([]byte(b.trace.Text(s.Label)), []byte("slice"))
		}
	}
	for i := range b.options {
		b.layers.List[i].Options = b.options[i].list
	}
	b.trace.Fill(run.Profile, &b.layers, &b.flows)
}

// parts of the description that opmeter writes of its first track.
var (
	ran     = regexp.MustCompile(`; (\d+) iterations ran`)
	dropped = regexp.MustCompile(`; (\d+) records were dropped`)
)

func (b *reader) ours(run *runlog.Run) {
	p := run.Profile
	track.NameOwn(p, b.process(1).name)
	method, rest, _ := strings.Cut(b.about, "; time 0 is the ")
	origin, _, _ := strings.Cut(rest, "; ")
	if rest == "" {
		method, _, _ = strings.Cut(b.about, "; ")
	}
	b.own.Fill(p, &b.trace, &b.flows, origin, method)
	if t := p.Timeline; t != nil {
		t.Iterations, t.Dropped = number(ran, b.about), number(dropped, b.about)
	}
}

func number(in *regexp.Regexp, s string) *int64 {
	if m := in.FindStringSubmatch(s); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return &n
		}
	}
	return nil
}
