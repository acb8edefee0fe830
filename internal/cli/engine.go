package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/internal/measure/speedlog"
	"github.com/opmeter/opmeter/profile"
)

// engineFlags say which engines run a model.
type engineFlags struct {
	list    string
	listed  bool // by the command line: a further --engine adds to list
	options []string
	silent  time.Duration
	check   bool
}

const (
	// ownEngine is the list of engines where nothing is said.
	ownEngine = "opmeter"
	// autoEngine is that of a profile: opmeter's own engine and, for one model on this computer,
	// for a short time one that is installed.
	autoEngine = "auto"
	// engineVariable is the variable of the environment that replaces autoEngine.
	engineVariable = "OPMETER_DEFAULT_ENGINE"
)

// add adds the flags of a profile.
func (f *engineFlags) add(c *cobra.Command) {
	f.addEngines(c)
	e := c.Flags().Lookup("engine")
	e.DefValue, f.list = autoEngine, autoEngine
	e.Usage = "`NAME[,NAME]`: engines that run the model"
	c.Flags().BoolVar(&f.check, "check", false, "measure the slowest layers again, each as a model of its own")
}

// addEngines adds the flags that name engines.
func (f *engineFlags) addEngines(c *cobra.Command) {
	f.list = ownEngine
	c.Flags().Var((*engineList)(f), "engine", "`NAME[,NAME]`: engines that run the model")
	c.Flags().StringArrayVar(&f.options, "engine-option", nil, "`KEY=VALUE`: option of the engine; ENGINE:KEY=VALUE for one of several")
	spanVar(c, &f.silent, "engine-timeout", 5*time.Minute, 1, "time limit of an engine for each operation", "a time above zero, such as 10m")
}

// engineList is the list of engines as the value of an option that may be given several times.
type engineList engineFlags

func (l *engineList) String() string { return l.list }

func (*engineList) Type() string { return "string" }

// Set adds to what was given before, and replaces the default.
func (l *engineList) Set(v string) error {
	if l.listed {
		v = l.list + "," + v
	}
	l.list, l.listed = v, true
	return nil
}

// chosen is an engine with the name that it was asked for.
type chosen struct {
	name   string
	engine *engine.Engine // nil for opmeter's own
	check  bool           // measure the slowest layers in a second way
	auto   bool           // measure an installed engine beside it for a short time
}

// set takes the engines from the environment where the command line names none.
func (f *engineFlags) set(c *cobra.Command) {
	if v := os.Getenv(engineVariable); v != "" && !c.Flags().Changed("engine") {
		f.list = v
	}
}

// each returns the engines of the list as they were written, the whole list if it is wrong: find
// says why.
func (f *engineFlags) each() []string {
	specs, err := find.Parse(f.list)
	if err != nil {
		return []string{f.list}
	}
	out := make([]string, len(specs))
	for i, s := range specs {
		out[i] = s.String()
	}
	return out
}

// reads refuses engines that do not read a model's format, before they are searched for: what
// would get such an engine does not help. Folders and several models are read one by one later.
func (f *engineFlags) reads(models []string) error {
	if len(models) != 1 {
		return nil
	}
	specs, _ := find.Parse(f.list) // find says what is wrong
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(models[0])), ".")
	if format != "onnx" && format != "tflite" {
		return nil
	}
	var others []string
	for _, e := range find.Engines {
		if !e.Program && slices.Contains(e.Formats, format) {
			others = append(others, e.Name)
		}
	}
	for _, s := range specs {
		i := slices.IndexFunc(find.Engines, func(e find.Engine) bool { return e.Name == s.Engine })
		if i < 0 || s.Library != "" || slices.Contains(find.Engines[i].Formats, format) {
			continue
		}
		e := &find.Engines[i]
		return useError("--engine %s: %s reads .%s models only, %s is .%s: use --engine %s", e.Name, e.Title, strings.Join(e.Formats, " and ."), models[0], format, strings.Join(others, " or "))
	}
	return nil
}

// find finds the engines that were asked for.
func (f *engineFlags) find() ([]chosen, error) {
	list, auto := f.list, f.list == autoEngine
	if auto {
		list = ownEngine
	} else if slices.Contains(strings.Split(list, ","), autoEngine) {
		return nil, useError("--engine %s: auto is opmeter's own engine and one that is installed: use it alone, or name the engines", list)
	}
	found, err := engine.Find(list)
	if err != nil {
		return nil, told(err)
	}
	if f.check && len(found) > 1 {
		return nil, useError("--check works with one engine only")
	}
	if f.check && found[0] != nil && found[0].Command != "" {
		return nil, useError("--check cuts the model, which tflm=PROGRAM does not allow: leave it out")
	}
	out := make([]chosen, len(found))
	for i, e := range found {
		out[i] = chosen{name: ownEngine, engine: e, check: f.check, auto: auto && !f.check}
		if e == nil {
			continue
		}
		out[i].name = e.Name
		if n := slices.IndexFunc(out[:i], func(c chosen) bool { return c.name == e.Name }); n >= 0 {
			out[i].name = numbered(out[:i], e)
		}
		e.Silent = f.silent
	}
	return out, f.give(out)
}

// numbered names an engine of which there is another: by its version, or the file of its library
// or program, and by a number where that is the same.
func numbered(others []chosen, e *engine.Engine) string {
	base := e.Name + "-" + cmp.Or(e.Version, baseName(filepath.Base(e.Library)))
	name := base
	for n := 2; slices.ContainsFunc(others, func(c chosen) bool { return c.name == name }); n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	return name
}

// programs reports whether a program is among the engines.
func programs(cs []chosen) bool {
	return slices.ContainsFunc(cs, func(c chosen) bool { return c.engine != nil && c.engine.Command != "" })
}

// fit gives programs the frequency of their clock, and refuses options that do not suit all
// engines before any of them runs.
func fit(cs []chosen, o opmeter.Options, t *targetFlags) error {
	for _, c := range cs {
		if c.engine == nil || c.engine.Command == "" {
			continue
		}
		var err error
		if c.engine.ClockHz, err = t.hertz(); err != nil {
			return err
		}
		o.Engine = c.engine
		if err := o.Validate(); err != nil {
			return told(err)
		}
	}
	return nil
}

// give gives the options to the engines that they are for.
func (f *engineFlags) give(to []chosen) error {
	for _, o := range f.options {
		key, value, ok := strings.Cut(o, "=")
		if !ok || key == "" {
			return useError("--engine-option %q: write KEY=VALUE", o)
		}
		taken := false
		who, rest, several := strings.Cut(key, ":")
		for _, c := range to {
			if c.engine == nil {
				continue
			}
			k := key
			if several && slices.ContainsFunc(to, func(c chosen) bool { return c.engine != nil && c.engine.Name == who }) {
				if c.engine.Name != who {
					continue
				}
				k = rest
			}
			c.engine.Options = append(c.engine.Options, engine.Option{Key: k, Value: value})
			taken = true
		}
		if !taken {
			return useError("--engine-option %s: opmeter's own engine has no options: name another engine with --engine", o)
		}
	}
	return nil
}

// byEngines makes a runner for each engine. Several are interleaved; layers are checked when all
// are measured.
func (a *app) byEngines(cs []chosen, opts opmeter.Options, ph *phaseFlags, measured func(*profile.Profile)) []runner {
	if slices.ContainsFunc(cs, func(c chosen) bool { return c.engine != nil }) {
		a.measures(longPatience)
	}
	rs := make([]runner, len(cs))
	for i, c := range cs {
		opts := opts
		opts.Engine = c.engine
		var took time.Duration
		rs[i] = onHost(func(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error) {
			opts := opts
			opts.Progress, opts.MaxMACs, opts.Interleaver = b.progress, b.macs, b.turns
			var auto bool
			if opts.Phases, auto = ph.of(m, b.macs == 0 && len(cs) == 1 && !programs(cs)); auto {
				a.sayPhases(opts.Phases)
			}
			return a.kept(b.files, func(journal string) (*profile.Profile, error) {
				opts.Journal = journal
				began := time.Now()
				p, err := opmeter.Profile(ctx, m, opts)
				took = time.Since(began)
				if err == nil && p.Host != nil {
					quality.BetweenRuns(p, speedlog.Default(p.Host.CPUModel), began)
				}
				if _, ok := errors.AsType[*opmeter.UnrunError](err); ok {
					err = nil // each output says so itself
				}
				return p, err
			})
		})
		rs[i].phases = ph.asked
		rs[i].after = func(ctx context.Context, m *opmeter.Model, p *profile.Profile, err error, b bounds) error {
			if c.check && err == nil {
				opts := opts
				opts.Progress, opts.MaxMACs = b.progress, b.macs
				err = opmeter.Check(ctx, m, p, opts)
			}
			if c.auto && err == nil && b.macs == 0 && len(cs) == 1 && p.Language == nil && opts.Lists == nil {
				opts := opts
				opts.Progress = b.progress
				err = a.beside(ctx, m, p, opts, took)
			}
			measured(p)
			return err
		}
		if len(cs) > 1 {
			rs[i].target, rs[i].turns = c.name, true
		}
	}
	return rs
}

// What an installed engine may take beside opmeter's own: a part of the time that this one took,
// and the most.
const (
	besidePart = 3
	besideMost = 2 * time.Second
)

// installed finds an installed engine for a model. If the search fails, the profile is whole
// without it, and a finding says why.
func installed(m *opmeter.Model, p *profile.Profile) *engine.Engine {
	e, err := engine.Installed(m.Format())
	if err != nil {
		p.Findings = append(p.Findings, profile.Finding{ID: "engine.other", Severity: profile.Info, Text: "An installed engine was not measured: " + err.Error() + "."})
	}
	return e
}

// beside measures an installed engine for a short time, where it can run the model as opmeter's
// own engine did: with this graph, without --exact and without a chosen instruction set.
func (a *app) beside(ctx context.Context, m *opmeter.Model, p *profile.Profile, o opmeter.Options, took time.Duration) error {
	if p == nil || !costs(p) || ctx.Err() != nil || len(p.Incomplete) > 0 || a.signature != "" || o.Exact || os.Getenv("OPMETER_CPU") != "" {
		return nil //nolint:nilerr // a stop is no error: the profile is there
	}
	if o.Engine = installed(m, p); o.Engine == nil {
		return nil
	}
	limit := a.besides
	if limit == 0 {
		limit = min(took/besidePart, besideMost)
	}
	return told(opmeter.CompareEngine(ctx, m, p, o, limit))
}
