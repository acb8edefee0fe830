package compress

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/study"
)

// SpeedOptions configure a performance profile.
type SpeedOptions struct {
	// Name identifies the profile; "" derives one from the settings.
	Name string
	// Target is hardware whose times are estimated, nil for this computer. Runs configures the
	// estimate.
	Target *chip.Target
	Runs   chip.Options
	// External is another engine to measure in, nil for opmeter's own.
	External *External
	// Counted uses operation counts instead of times.
	Counted bool
	// Batch is the first dimension of inputs, 0 for the file's. Threads is the thread count, 0
	// for 1.
	Batch, Threads int
	// Changes are the changes to try: see [Grid].
	Changes []study.Change
	// Time of each comparison, 0 for the default.
	Time time.Duration
}

// speedSettings returns the settings that the profile stores.
func (j *Job) speedSettings(o *SpeedOptions) study.SpeedSettings {
	s := study.SpeedSettings{Name: o.Name, Target: "host", Batch: o.Batch, Counted: o.Counted, Changes: o.Changes, Shapes: j.inputShapes(o.Batch)}
	name := "host"
	switch {
	case o.Counted:
		name = "flops"
	case o.Target != nil:
		s.Target, name = o.Target.ID, o.Target.ID
	default:
		s.Threads = max(o.Threads, 1)
		if o.External != nil {
			s.Engine = o.External.Name
			name += "-" + strings.ReplaceAll(o.External.Name, " ", "-")
		} else {
			s.KernelSet = simd.Current().String()
		}
		if s.Threads > 1 {
			name += fmt.Sprintf("-t%d", s.Threads)
		}
	}
	if o.Batch > 0 {
		name += fmt.Sprintf("-b%d", o.Batch)
	}
	if s.Name == "" {
		s.Name = name + j.shapeSuffix()
	}
	return s
}

// Speed makes a performance profile, or resumes the one of that name.
func (j *Job) Speed(ctx context.Context, o SpeedOptions) (*study.Speed, error) {
	s := j.speedSettings(&o)
	p := j.Study().Speed(s.Name)
	if p == nil {
		p = &study.Speed{SpeedSettings: s, Created: now()}
	} else if err := checkSpeedSettings(p, &s); err != nil {
		return nil, err
	}
	all := union(p.Changes, s.Changes)
	if j.Study().Speed(s.Name) == nil || len(all) > len(p.Changes) {
		grown := *p
		grown.Changes, grown.Done = all, false
		if err := j.File.Append(study.Record{Speed: &grown}); err != nil {
			return nil, err
		}
	}
	p = j.Study().Speed(s.Name)
	if p.Done {
		return p, nil
	}
	err := j.speed(ctx, &o, p)
	return p, contextError(ctx, err)
}

// checkSpeedSettings refuses to resume a profile that was made with other settings.
func checkSpeedSettings(p *study.Speed, s *study.SpeedSettings) error {
	return checkSettings("performance", p.Name, []setting{
		{"target", p.Target, s.Target},
		{"engine", cmp.Or(p.Engine, "opmeter"), cmp.Or(s.Engine, "opmeter")},
		{"batch", p.Batch, s.Batch},
		{"threads", p.Threads, s.Threads},
		{"kernel set", p.KernelSet, s.KernelSet},
		{"counting", p.Counted, s.Counted},
		{"inputs", cmp.Or(p.Shapes, s.Shapes), s.Shapes},
	})
}

// setting is a setting of an existing profile and of one to be made.
type setting struct {
	what      string
	have, now any
}

// checkSettings refuses to resume a profile where a setting differs.
func checkSettings(kind, name string, all []setting) error {
	for _, x := range all {
		if x.have != x.now {
			return optionError("Name", "the %s profile %q was made with %s %v, not %v: give this one another name", kind, name, x.what, x.have, x.now)
		}
	}
	return nil
}

// speed measures what a profile still lacks.
func (j *Job) speed(ctx context.Context, o *SpeedOptions, p *study.Speed) error {
	have := map[study.Change]bool{{}: len(p.Layers) > 0}
	for _, x := range p.Points {
		have[x.Change] = true
	}
	has := func(c study.Change) bool { return have[c] }
	yield := func(s *study.SpeedPoints) error {
		s.Name = p.Name
		return j.File.Append(study.Record{SpeedPoints: s})
	}
	changes := slices.Clone(p.Changes)
	switch {
	case o.Counted:
		return speed.Count(j.m, j.Layers, changes, has, yield)
	case o.Target != nil:
		return speed.Estimate(ctx, j.m, j.Layers, speed.TargetOptions{
			Target: o.Target, Options: o.Runs, Feed: j.inputOptions(o.Batch), Changes: changes, Have: has, Progress: j.o.Progress,
		}, yield)
	}
	withMixes := func(s *study.SpeedPoints) error {
		s.Done = false // mixed models follow
		return yield(s)
	}
	if o.External != nil {
		if err := j.measureExternal(ctx, o, p, has, withMixes); err != nil {
			return err
		}
	} else {
		ins, err := j.inputs(o.Batch)
		if err != nil {
			return err
		}
		if err := speed.Measure(ctx, j.m, j.Layers, speed.Options{
			Engine: j.engineOptions(o.Threads), Inputs: ins, Changes: changes, Have: has, Time: o.Time, Progress: j.o.Progress,
		}, withMixes); err != nil {
			return err
		}
	}
	if err := j.MeasureMixes(ctx, RandomMixes(p, len(j.Layers), mixedModels, 0), o, j.File, p); err != nil {
		return err
	}
	return yield(&study.SpeedPoints{Done: true})
}
