package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// gateFlags say what is judged, by which rules and against which base.
type gateFlags struct {
	m              modelFlags
	t              targetFlags
	policy, base   string
	store, emulate string
	format         string
	files          []string
	measure        bool
	all, record    bool
	init           bool
	budget         time.Duration
	threads        int
	// --measure and --budget were given
	changedMeasures, changedBudget bool
}

func newGate(a *app) *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:        "gate MODEL...",
		SuggestFor: []string{"check", "ci", "regress"},
		Short:      "Decide whether a change makes models worse: for CI",
		Long: `Compare models with their base by the rules of a policy. Exact figures (work, memory, sizes,
estimates, emulated instructions) decide first; --measure also times both versions interleaved.
The base is the merge base with the branch that the change is for, or what was accepted since.
A model that the base has and the change lacks is worse, unless opmeter gate accept names it.
Exit status: 0 not worse, 1 worse, 5 undecided. docs/ci.md has the rules and workflow files.`,
		Example: `  opmeter gate models/kws.tflite
  opmeter gate model.tflite --emulate mps2-an505 -o gate.md -o junit.xml
  opmeter gate model.onnx --measure --budget 60s
  opmeter gate accept model.tflite --reason "wider first layer"`,
		RunE: func(c *cobra.Command, args []string) error {
			f.changedMeasures, f.changedBudget = c.Flags().Changed("measure"), c.Flags().Changed("budget")
			g, err := a.newGateRun(c.Context(), &f)
			if err != nil {
				return err
			}
			if f.init {
				return g.init(args)
			}
			if err := g.fits(c); err != nil {
				return err
			}
			return g.run(c.Context(), args)
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.base, "base", gate.Auto, "`WHICH`: auto, accepted, merge-base, parent, a commit, or FILE.opmeter")
	c.Flags().BoolVar(&f.measure, "measure", false, "time both versions on this computer, interleaved")
	spanVar(c, &f.budget, "budget", time.Minute, 1, "time for all measurements", "a time above zero, such as 60s")
	wholeVar(c, &f.threads, "threads", 1, 1, 1024, "threads of the measured versions", "")
	c.Flags().BoolVar(&f.all, "all", false, "show equal figures, too")
	c.Flags().BoolVar(&f.record, "record", false, "append the figures to the index, for opmeter history")
	c.Flags().BoolVar(&f.init, "init", false, "write the built-in policy to .opmeter/gate.yaml")
	c.Flags().StringVar(&f.format, "format", "table", "`NAME`: format on standard output: "+strings.Join(gate.Formats, ", "))
	c.Flags().StringArrayVarP(&f.files, "output", "o", nil, "`FILE`: write it; .txt .md .xml (JUnit) .json .bmf.json (Bencher)")
	c.AddCommand(newGateAccept(a), newGateIgnore(a))
	return c
}

// add adds the flags of all verbs that take figures.
func (f *gateFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.t.on, "on", nil, "`TARGET`: host, or a target to estimate for (default: host)")
	f.t.addDir(c)
	c.Flags().StringVar(&f.emulate, "emulate", "", "`BOARD`: also count instructions on an emulated board")
	c.Flags().StringVar(&f.policy, "policy", "", "`FILE`: rules (default: .opmeter/gate.yaml, else built in)")
	c.Flags().StringVar(&f.store, "baselines", "", "`DIR`: folder of the baselines (default: .opmeter)")
	f.m.add(c)
}

func newGateAccept(a *app) *cobra.Command {
	var f gateFlags
	var reason string
	c := &cobra.Command{
		Use:   "accept MODEL...",
		Short: "Make the figures of the working tree the new baseline",
		Long: `Save the figures of the working tree as baselines, with a reason. A later opmeter gate compares
with them until they are part of its base. A model whose file is gone is accepted as removed.
Commit the folder .opmeter with the change.`,
		Example: `  opmeter gate accept model.tflite --reason "wider first layer, +1.2 % accuracy"
  opmeter gate accept --policy ci/gate.yaml --reason "new runtime"`,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return useError("--reason: say why the figures are accepted")
			}
			g, err := a.newGateRun(c.Context(), &f)
			if err != nil {
				return err
			}
			return g.accept(c.Context(), args, reason)
		},
	}
	f.add(c)
	c.Flags().StringVar(&reason, "reason", "", "`TEXT`: why the change is accepted")
	return c
}

func newGateIgnore(a *app) *cobra.Command {
	var f gateFlags
	var g gate.Ignore
	c := &cobra.Command{
		Use:   "ignore FIGURE --until DATE --reason TEXT",
		Short: "Acknowledge a known change of a figure until a day",
		Long: `Keep a figure from deciding until a day, with a reason. It is still shown, with the reason. The
acknowledgement is a line of .opmeter/ignore.jsonl: commit it.`,
		Example: `  opmeter gate ignore latency_s --until 2030-03-31 --reason "runner is replaced"
  opmeter gate ignore macs --model 'kws*' --until 2030-03-31 --reason "see the plan"`,
		Args: one("a figure, such as macs"),
		RunE: func(c *cobra.Command, args []string) error {
			g.Figure = args[0]
			r, err := a.newGateRun(c.Context(), &f)
			if err != nil {
				return err
			}
			return r.ignore(c.Context(), &g)
		},
	}
	c.Flags().StringVar(&g.Until, "until", "", "`DATE`: last day, such as 2030-12-31")
	c.Flags().StringVar(&g.Reason, "reason", "", "`TEXT`: why it is known")
	c.Flags().StringVar(&g.Model, "model", "", "`PATTERN`: models that it is for (default: all)")
	c.Flags().StringVar(&g.Target, "on", "", "`TARGET`: target that it is for (default: all)")
	c.Flags().StringVar(&f.store, "baselines", "", "`DIR`: folder of the baselines (default: .opmeter)")
	return c
}

// fits refuses flags that would be ignored.
func (g *gateRun) fits(c *cobra.Command) error {
	timed, asked := false, false
	for i := range g.rules.Rules {
		r := &g.rules.Rules[i]
		if r.Figure == gate.Latency && gate.Matches(r.Target, gate.Host) {
			timed, asked = true, asked || g.measures(r)
		}
	}
	if g.f.measure && !timed {
		return useError("--measure: no rule of the policy (%s) is about %s on %s: add one", g.rules.File, gate.Latency, gate.Host)
	}
	for _, name := range []string{"budget", "threads"} {
		if c.Flags().Changed(name) && !asked {
			return useError("--%s is for measured times: add --measure, or leave it out", name)
		}
	}
	if g.f.all && g.f.format != "table" {
		return useError("--all is for --format table: %s has all figures", g.f.format)
	}
	return nil
}

// gateRun is one run of a gate.
type gateRun struct {
	a     *app
	f     *gateFlags
	repo  *gate.Repo // nil without git
	why   error      // why it is nil
	root  string     // folder that the names of models begin at
	store *gate.Store
	rules *gate.Policy
	saved *profile.Profile // the base of --base FILE, else nil
	now   time.Time
	env   func(string) string
	// temp is a folder for models of the base, "" before it is needed; remove removes it.
	temp   string
	remove func()
}

// newGateRun reads the repository, the baselines and the policy.
func (a *app) newGateRun(ctx context.Context, f *gateFlags) (*gateRun, error) {
	g := &gateRun{a: a, f: f, now: time.Now(), env: os.Getenv}
	if f.format != "" && !slices.Contains(gate.Formats, f.format) {
		return nil, useError("--format %q: use one of %s", f.format, strings.Join(gate.Formats, ", "))
	}
	for _, file := range f.files {
		if _, err := gate.FormatOf(file); err != nil {
			return nil, withStatus(statusUse, err)
		}
	}
	if err := ready(f.files); err != nil {
		return nil, err
	}
	where := "."
	if f.store != "" {
		where = filepath.Dir(filepath.Clean(f.store))
	}
	root, err := filepath.Abs(where)
	if err != nil {
		return nil, err
	}
	g.root = root
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return nil, useError("--baselines %s: no such folder: %s", f.store, where)
	}
	if g.repo, err = gate.OpenRepo(ctx, root); err != nil {
		if ctx.Err() != nil {
			return nil, told(ctx.Err())
		}
		if !errors.Is(err, gate.ErrNoGit) && !errors.Is(err, gate.ErrNoRepo) {
			return nil, withStatus(statusSource, err)
		}
		g.repo, g.why = nil, err
	} else {
		g.root = g.repo.Root
	}
	dir := f.store
	if dir == "" {
		dir = filepath.Join(g.root, gate.Folder)
	}
	if g.store, err = gate.Open(dir); err != nil {
		return nil, withStatus(statusInput, plainPath(err))
	}
	_ = g.store.Clean() // of processes that were killed; where it cannot be written, they stay
	return g, g.readPolicy(dir)
}

// readPolicy reads the policy that is named, that of the folder, or the built-in one.
func (g *gateRun) readPolicy(dir string) error {
	file := g.f.policy
	if file == "" {
		file = filepath.Join(dir, gate.PolicyFile)
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			g.rules = gate.Default()
			return nil
		}
	}
	const most = 2 << 20
	b, err := infile.Read(file, most)
	if err != nil {
		return withStatus(statusInput, plainPath(err))
	}
	name := file
	if rel, err := filepath.Rel(g.root, file); err == nil && filepath.IsLocal(rel) {
		name = filepath.ToSlash(rel)
	}
	g.rules, err = gate.ParsePolicy(b, name)
	return withStatus(statusInput, err)
}

// init writes the policy and what git needs to merge the index.
func (g *gateRun) init(args []string) error {
	if len(args) > 0 {
		return useError("--init takes no models: list them in the policy")
	}
	path := filepath.Join(g.store.Dir, gate.PolicyFile)
	if _, err := os.Lstat(path); err == nil {
		return useError("%s exists: edit it, or remove it first", text.Clean(path))
	}
	err := g.store.Init()
	if err == nil {
		err = atomicfile.Write(path, []byte(gate.DefaultText))
	}
	if err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	g.a.sayWrote([]string{path}, true)
	return nil
}

// ignore appends an acknowledgement.
func (g *gateRun) ignore(ctx context.Context, i *gate.Ignore) error {
	if _, ok := gate.Lookup(i.Figure); !ok {
		return useError("%q is not a figure%s; docs/ci.md lists them", i.Figure, gate.Nearest(i.Figure, gate.Keys()))
	}
	end, err := time.Parse(time.DateOnly, i.Until)
	switch {
	case err != nil:
		return useError("--until %q: write a date such as 2030-12-31", i.Until)
	case g.now.UTC().After(end.AddDate(0, 0, 1)):
		return useError("--until %s is in the past", i.Until)
	case strings.TrimSpace(i.Reason) == "":
		return useError("--reason: say why the change is known")
	}
	for _, p := range []struct{ flag, pattern string }{{"--model", i.Model}, {"--on", i.Target}} {
		if err := gate.CheckPattern(p.pattern); err != nil {
			return useError("%s %v", p.flag, err)
		}
	}
	if err := g.concerns(ctx, i); err != nil {
		return err
	}
	i.Time = g.stamp()
	if err := g.store.Ignore(*i); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	for _, l := range report.Wrap(fmt.Sprintf("%s does not decide until %s: %s", i.Figure, i.Until, text.Clean(i.Reason)), g.a.width) {
		fmt.Fprintln(g.a.out, l)
	}
	return nil
}

// concerns refuses an acknowledgement that is about nothing: a name is wrong then.
func (g *gateRun) concerns(ctx context.Context, i *gate.Ignore) error {
	var figures []string
	for _, r := range g.rules.Rules {
		figures = append(figures, r.Figure)
	}
	if !slices.Contains(figures, i.Figure) {
		return useError("no rule of the policy (%s) is about %s, so that it never decides%s", g.rules.File, i.Figure, gate.Nearest(i.Figure, figures))
	}
	if i.Target != "" && !strings.ContainsAny(i.Target, "*?[") {
		if err := g.check([]gateJob{{target: i.Target}}); err != nil {
			return err
		}
	}
	if i.Model == "" || g.repo == nil {
		return nil // without git the files of the base are not known
	}
	var models []string
	if err := g.repo.Tracking(ctx, func(path string) {
		if modelfile.HasEnding(path) || isDescriptionName(path) && isModel(filepath.Join(g.root, filepath.FromSlash(path))) {
			models = append(models, path)
		}
	}); err != nil {
		return withStatus(statusSource, err)
	}
	for _, at := range g.store.Places(func(string) bool { return true }) {
		models = append(models, at[0])
	}
	for _, m := range models {
		if gate.Matches(i.Model, m) {
			return nil
		}
	}
	if _, err := os.Lstat(filepath.Join(g.root, filepath.FromSlash(i.Model))); err == nil {
		return nil
	}
	return useError("--model %q: neither git nor the baselines have such a model%s", i.Model, gate.Nearest(i.Model, models))
}

func (g *gateRun) stamp() string { return g.now.UTC().Format(time.RFC3339) }

// version is that of this program.
func (g *gateRun) version() string { return buildinfo.Version() }
