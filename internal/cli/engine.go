package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/profile"
)

// engineFlags say which engines run a model.
type engineFlags struct {
	list    string
	options []string
	silent  time.Duration
	check   bool
}

// ownEngine is the list of engines where nothing is said.
const ownEngine = "opmeter"

func (f *engineFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.list, "engine", ownEngine, "`NAME[,NAME]`: engines that run the model")
	c.Flags().StringArrayVar(&f.options, "engine-option", nil, "`KEY=VALUE`: option of the engine; ENGINE:KEY=VALUE of one of several")
	c.Flags().BoolVar(&f.check, "check", false, "measure the slowest layers again, by cutting the model")
	spanVar(c, &f.silent, "engine-timeout", 5*time.Minute, 1, "how long an engine may take for one thing", "a time above zero, such as 10m")
}

// chosen is an engine with the name that it was asked for.
type chosen struct {
	name   string
	engine *opmeter.Engine // nil for opmeter's own
	check  bool            // measure the slowest layers in a second way
}

// find finds the engines that were asked for.
func (f *engineFlags) find() ([]chosen, error) {
	found, err := opmeter.FindEngines(f.list)
	if err != nil {
		return nil, told(err)
	}
	if f.check && len(found) > 1 {
		return nil, useError("--check is for one engine: the others would disturb it")
	}
	out := make([]chosen, len(found))
	for i, e := range found {
		out[i] = chosen{name: ownEngine, engine: e, check: f.check}
		if e == nil {
			continue
		}
		out[i].name = e.Name
		if n := slices.IndexFunc(out[:i], func(c chosen) bool { return c.name == e.Name }); n >= 0 {
			out[i].name += "-" + e.Version
		}
		e.Silent = f.silent
	}
	return out, f.give(out)
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
			c.engine.Options = append(c.engine.Options, opmeter.EngineOption{Key: k, Value: value})
			taken = true
		}
		if !taken {
			return useError("--engine-option %s: there is no other engine: name one with --engine", o)
		}
	}
	return nil
}

// byEngines makes a runner for each engine. Several take turns.
func (a *app) byEngines(cs []chosen, opts opmeter.Options, measured func(*profile.Profile)) []runner {
	if slices.ContainsFunc(cs, func(c chosen) bool { return c.engine != nil }) {
		a.measures(guestPatience)
	}
	rs := make([]runner, len(cs))
	for i, c := range cs {
		opts := opts
		opts.Engine = c.engine
		rs[i] = onHost(func(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error) {
			opts := opts
			opts.Progress, opts.MaxMACs, opts.Turns = b.progress, b.macs, b.turns
			p, err := a.kept(b.files, func(journal string) (*profile.Profile, error) {
				opts.Journal = journal
				return opmeter.Profile(ctx, m, opts)
			})
			if c.check && err == nil {
				opts.Turns = nil
				err = opmeter.Check(ctx, m, p, opts)
			}
			measured(p)
			return p, err
		})
		if len(cs) > 1 {
			rs[i].target, rs[i].turns = c.name, true
		}
	}
	return rs
}
